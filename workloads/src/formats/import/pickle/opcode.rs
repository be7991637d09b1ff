//! The opcodes of pickle, so that those which are refused have a name.

/// Every opcode of protocols 0 to 5 with its name in `pickletools`.
const NAMES: [(u8, &str); 68] = [
    (b'(', "MARK"),
    (b'.', "STOP"),
    (b'0', "POP"),
    (b'1', "POP_MARK"),
    (b'2', "DUP"),
    (b'F', "FLOAT"),
    (b'I', "INT"),
    (b'J', "BININT"),
    (b'K', "BININT1"),
    (b'L', "LONG"),
    (b'M', "BININT2"),
    (b'N', "NONE"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (b'R', "REDUCE"),
    (b'S', "STRING"),
    (b'T', "BINSTRING"),
    (b'U', "SHORT_BINSTRING"),
    (b'V', "UNICODE"),
    (b'X', "BINUNICODE"),
    (b'a', "APPEND"),
    (b'b', "BUILD"),
    (b'c', "GLOBAL"),
    (b'd', "DICT"),
    (b'}', "EMPTY_DICT"),
    (b'e', "APPENDS"),
    (b'g', "GET"),
    (b'h', "BINGET"),
    (b'i', "INST"),
    (b'j', "LONG_BINGET"),
    (b'l', "LIST"),
    (b']', "EMPTY_LIST"),
    (b'o', "OBJ"),
    (b'p', "PUT"),
    (b'q', "BINPUT"),
    (b'r', "LONG_BINPUT"),
    (b's', "SETITEM"),
    (b't', "TUPLE"),
    (b')', "EMPTY_TUPLE"),
    (b'u', "SETITEMS"),
    (b'G', "BINFLOAT"),
    (0x80, "PROTO"),
    (0x81, "NEWOBJ"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (0x85, "TUPLE1"),
    (0x86, "TUPLE2"),
    (0x87, "TUPLE3"),
    (0x88, "NEWTRUE"),
    (0x89, "NEWFALSE"),
    (0x8a, "LONG1"),
    (0x8b, "LONG4"),
    (b'B', "BINBYTES"),
    (b'C', "SHORT_BINBYTES"),
    (0x8c, "SHORT_BINUNICODE"),
    (0x8d, "BINUNICODE8"),
    (0x8e, "BINBYTES8"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
    (0x92, "NEWOBJ_EX"),
    (0x93, "STACK_GLOBAL"),
    (0x94, "MEMOIZE"),
    (0x95, "FRAME"),
    (0x96, "BYTEARRAY8"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

/// The name of an opcode.
pub(crate) fn opcode_name(opcode: u8) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == opcode).map(|(_, name)| *name)
}

/// Why an opcode is not performed.
pub(crate) fn refusal_reason(opcode: u8) -> String {
    let Some(name) = opcode_name(opcode) else { return format!("0x{opcode:02x} is no opcode of pickle") };
    match name {
        "GLOBAL" | "STACK_GLOBAL" | "REDUCE" | "INST" | "OBJ" | "NEWOBJ" | "NEWOBJ_EX" | "BUILD" | "EXT1"
        | "EXT2" | "EXT4" | "PERSID" | "BINPERSID" => {
            format!("the opcode {name} is refused: it can run code, and a recording has no need of it")
        }
        _ => format!("the opcode {name} is refused: no recording of memory has it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_one_name() {
        for (at, (opcode, name)) in NAMES.iter().enumerate() {
            assert!(NAMES[..at].iter().all(|(other, alias)| other != opcode && alias != name), "{name}");
        }
        assert_eq!(refusal_reason(0xFF), "0xff is no opcode of pickle");
    }
}
