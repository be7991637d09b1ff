//! The stack machine.

use std::io::{self, Read};

use super::bytes::Bytes;
use super::heap::Heap;
use super::memo::Memo;
use super::opcode;
use super::value::Value;
use crate::formats::{FormatError, InputLimits};

/// The highest protocol. Protocol 5 adds opcodes for bytes outside the stream, which are refused like any other.
const HIGHEST: u8 = 5;
/// What stands behind the pickle in the archive of `torch.save`, which does not know the size before.
const BEHIND_ENTRY: &[u8] = b"PK\x07\x08";
/// More bytes than any input has: a length beyond is a lie that needs no reading.
const LONGEST: u64 = 1 << 62;
/// What was read may take `TIMES` its bytes in memory, and [`SMALL`] more. A recording that is held as a whole takes less than
/// twice its bytes.
const TIMES: u64 = 4;
/// Bytes that every pickle may take.
const SMALL: u64 = 64 << 20;
/// Bytes of the pickle after which the room is looked at again.
const OFTEN: u64 = 4 << 10;
/// Marks that may be open at once: a recording has fewer than ten.
const DEEPEST: usize = 1000;

/// Takes the entries of lists while they are read. The lists lie in the list that the pickle's dict has for a key.
pub(crate) trait Watch {
    /// The key.
    fn key(&self) -> &str;

    /// Takes the next entries of the list with such a number; the heap will not have them.
    ///
    /// # Errors
    ///
    /// What is wrong with an entry.
    fn take_entries(&mut self, heap: &mut Heap, list: usize, entries: &[Value]) -> Result<(), FormatError>;
}

/// Reads a pickle to its end, and says which value it is.
///
/// # Errors
///
/// The first thing that is wrong, with its byte: an opcode that is refused, a reference to nothing, an end too early.
pub(crate) fn load_pickle(
    file: &str,
    input: impl Read,
    limits: InputLimits,
    watch: &mut impl Watch,
) -> Result<(Heap, Value), FormatError> {
    let mut machine = Machine::new(input, limits, watch);
    let mut at = 0;
    let root = loop {
        match machine.perform_opcode(&mut at) {
            Ok(None) => {}
            Ok(Some(root)) => break root,
            Err(Trouble::Wrong(reason)) => return Err(FormatError::at_byte(file, at, reason)),
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Read(error)) => {
                return Err(FormatError::at_byte(file, machine.bytes.bytes_read(), error.to_string()));
            }
        }
    };
    if !machine.is_as_watched(root) {
        let reason = format!("`{}` changes after it was complete", machine.watch.key());
        return Err(FormatError::at_byte(file, at, reason));
    }
    let (end, mut behind) = (machine.bytes.bytes_read(), Vec::new());
    match machine.bytes.copy_bytes(BEHIND_ENTRY.len() as u64, &mut behind) {
        Ok(0) => Ok((machine.heap, root)),
        Ok(_) if behind == BEHIND_ENTRY => Ok((machine.heap, root)),
        Ok(_) => Err(FormatError::at_byte(file, end, "something follows the end of the pickle")),
        Err(error) => Err(FormatError::at_byte(file, machine.bytes.bytes_read(), error.to_string())),
    }
}

/// Why the machine stops.
enum Trouble {
    /// The opcode makes no sense.
    Wrong(String),
    /// The watcher refused an entry.
    Refused(FormatError),
    Read(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<&str> for Trouble {
    fn from(reason: &str) -> Self {
        Self::Wrong(reason.to_owned())
    }
}

struct Machine<'w, R, W> {
    bytes: Bytes<R>,
    heap: Heap,
    stack: Vec<Value>,
    /// Lengths of the stack at each mark that is open.
    marks: Vec<usize>,
    memo: Memo,
    /// Bytes that a text may have.
    longest_text: u64,
    /// Bytes of the pickle at which the room is looked at.
    next_look: u64,
    watch: &'w mut W,
    /// Lists whose entries were taken, and their numbers.
    watched: Vec<(Value, usize)>,
}

impl<'w, R: Read, W: Watch> Machine<'w, R, W> {
    fn new(input: R, limits: InputLimits, watch: &'w mut W) -> Self {
        Self {
            bytes: Bytes::new(input),
            heap: Heap::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            longest_text: limits.document_bytes(),
            next_look: OFTEN,
            watch,
            watched: Vec::new(),
        }
    }

    /// Performs one opcode; the value of the pickle at its last. `at` is set to the opcode's byte.
    fn perform_opcode(&mut self, at: &mut u64) -> Result<Option<Value>, Trouble> {
        *at = self.bytes.bytes_read();
        if *at >= self.next_look {
            self.next_look = *at + OFTEN;
            self.check_room(*at)?;
        }
        let Some(opcode) = self.bytes.next_byte()? else { return Err("the pickle ends without STOP".into()) };
        match opcode {
            0x80 => self.read_protocol()?,
            0x95 => match u64::from_le_bytes(self.read_argument(opcode)?) {
                0..LONGEST => {}
                length => return Err(Trouble::Wrong(format!("a frame of {length} bytes"))),
            },
            b'.' => return self.stack_top().map(Some),
            b'(' if self.marks.len() == DEEPEST => {
                return Err(Trouble::Wrong(format!("more than {DEEPEST} marks are open")));
            }
            b'(' => self.marks.push(self.stack.len()),
            0x94 | b'q' | b'r' | b'h' | b'j' => self.remember_top(opcode)?,
            b'N' => self.stack.push(Value::NONE),
            0x88 => self.stack.push(Value::TRUE),
            0x89 => self.stack.push(Value::FALSE),
            b'K' | b'M' | b'J' | 0x8a | 0x8b | b'G' => self.push_number(opcode)?,
            0x8c | b'X' | 0x8d => self.push_text(opcode)?,
            b']' => {
                let list = self.heap.list_of()?;
                self.stack.push(list);
            }
            b'}' => {
                let dict = self.heap.dict_of(*at)?;
                self.stack.push(dict);
            }
            b')' | b't' | 0x85 | 0x86 | 0x87 => self.push_tuple(opcode)?,
            b'a' | b'e' | b's' | b'u' => self.fill_container(opcode)?,
            _ => return Err(Trouble::Wrong(opcode::refusal_reason(opcode))),
        }
        Ok(None)
    }

    /// Refuses a pickle whose first `read` bytes take too much memory.
    fn check_room(&self, read: u64) -> Result<(), Trouble> {
        if self.room_bytes() as u64 > read.saturating_mul(TIMES).saturating_add(SMALL) {
            return Err("its values take far more memory than the pickle is long: it is no honest one".into());
        }
        Ok(())
    }

    /// Bytes of everything that was read.
    fn room_bytes(&self) -> usize {
        self.heap.room_bytes() + size_of_val(&*self.stack) + self.memo.room_bytes()
    }

    fn read_protocol(&mut self) -> Result<(), Trouble> {
        match self.read_argument::<1>(0x80)? {
            [0..=HIGHEST] => Ok(()),
            [protocol] => {
                Err(Trouble::Wrong(format!("protocol {protocol} is not known, only 0 to {HIGHEST}")))
            }
        }
    }

    /// The argument of an opcode.
    fn read_argument<const N: usize>(&mut self, opcode: u8) -> Result<[u8; N], Trouble> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.bytes.next_byte()?.ok_or_else(|| cut_short(opcode))?;
        }
        Ok(bytes)
    }

    fn remember_top(&mut self, opcode: u8) -> Result<(), Trouble> {
        let index = match opcode {
            0x94 => self.memo.count(),
            b'q' | b'h' => u64::from(self.read_argument::<1>(opcode)?[0]),
            _ => u64::from(u32::from_le_bytes(self.read_argument(opcode)?)),
        };
        if matches!(opcode, b'h' | b'j') {
            let value = self.memo.get(index).ok_or_else(|| {
                let count = self.memo.count();
                Trouble::Wrong(format!("entry {index} of the memo is asked for, which has {count}"))
            })?;
            if self.heap.is_taken(value) {
                let reason =
                    format!("entry {index} of the memo is asked for, an event that was there already");
                return Err(Trouble::Wrong(reason));
            }
            self.stack.push(value);
        } else {
            let value = self.stack_top()?;
            self.memo.put(index, value);
        }
        Ok(())
    }

    fn push_number(&mut self, opcode: u8) -> Result<(), Trouble> {
        let number = match opcode {
            b'K' => i128::from(self.read_argument::<1>(opcode)?[0]),
            b'M' => i128::from(u16::from_le_bytes(self.read_argument(opcode)?)),
            b'J' => i128::from(i32::from_le_bytes(self.read_argument(opcode)?)),
            b'G' => {
                self.read_argument::<8>(opcode)?;
                self.stack.push(Value::FLOAT);
                return Ok(());
            }
            _ => self.read_long(opcode)?,
        };
        let value = self.heap.whole_of(number)?;
        self.stack.push(value);
        Ok(())
    }

    /// A whole number with its length in front: little-endian, two's complement.
    fn read_long(&mut self, opcode: u8) -> Result<i128, Trouble> {
        const WIDEST: i64 = 16;
        let length = match opcode {
            0x8a => i64::from(self.read_argument::<1>(opcode)?[0]),
            _ => i64::from(i32::from_le_bytes(self.read_argument(opcode)?)),
        };
        if !(0..=WIDEST).contains(&length) {
            return Err(Trouble::Wrong(format!("an integer of {length} bytes: there are 0 to {WIDEST}")));
        }
        let (mut number, mut bits) = (0_i128, 0);
        for _ in 0..length {
            let [byte] = self.read_argument(opcode)?;
            number |= i128::from(byte) << bits;
            bits += 8;
        }
        // The highest bit that was read is the sign.
        Ok(if (1..128).contains(&bits) { number << (128 - bits) >> (128 - bits) } else { number })
    }

    fn push_text(&mut self, opcode: u8) -> Result<(), Trouble> {
        let length = match opcode {
            0x8c => u64::from(self.read_argument::<1>(opcode)?[0]),
            b'X' => u64::from(u32::from_le_bytes(self.read_argument(opcode)?)),
            _ => u64::from_le_bytes(self.read_argument(opcode)?),
        };
        if length > self.longest_text {
            let most = self.longest_text;
            let reason =
                format!("a text of {length} bytes: there are at most {most} (--input-limit raises it)");
            return Err(Trouble::Wrong(reason));
        }
        if self.bytes.copy_bytes(length, self.heap.text_buffer())? < length {
            return Err(cut_short(opcode));
        }
        let value = self.heap.text_of().map_err(Trouble::Wrong)?;
        self.stack.push(value);
        Ok(())
    }

    fn push_tuple(&mut self, opcode: u8) -> Result<(), Trouble> {
        let from = match opcode {
            b't' => self.marks.pop().ok_or("there is no mark")?,
            b')' => self.stack.len(),
            _ => {
                let count = usize::from(opcode - 0x84);
                let from = self.stack.len().checked_sub(count).filter(|&from| from >= self.stack_floor());
                from.ok_or("the stack is too short")?
            }
        };
        let tuple = self.heap.tuple_of(&self.stack[from..])?;
        self.stack.truncate(from);
        self.stack.push(tuple);
        Ok(())
    }

    /// Puts what lies on top of the stack into the list or the dict below it.
    fn fill_container(&mut self, opcode: u8) -> Result<(), Trouble> {
        let from = match opcode {
            b'a' => self.stack.len().checked_sub(1),
            b's' => self.stack.len().checked_sub(2),
            _ => Some(self.marks.pop().ok_or("there is no mark")?),
        };
        let from = from.filter(|&from| from > self.stack_floor()).ok_or("the stack is too short")?;
        let (rest, items) = self.stack.split_at(from);
        let into = rest[from - 1];
        let is_list = matches!(opcode, b'a' | b'e');
        if is_list && into.is_list() {
            match self.number_of(from - 1) {
                Some(number) => return self.hand_over(number, from),
                None => self.heap.append_items(into, items)?,
            }
        } else if !is_list && into.is_dict() {
            self.heap.set_entries(into, items)?;
        } else {
            let name = opcode::opcode_name(opcode).unwrap_or_default();
            return Err(Trouble::Wrong(format!("{name} finds a value of type {}", into.type_name())));
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// The number of a list on the stack whose entries are watched.
    fn number_of(&self, at: usize) -> Option<usize> {
        // The dict, a mark or none, keys and values, the key, the list of lists, a mark or none, lists, this one.
        let (lists, marks) = match self.marks.split_last() {
            Some((&mark, marks)) if (3..=at).contains(&mark) => (mark - 1, marks),
            _ => (at.checked_sub(1)?, &*self.marks),
        };
        let key = lists.checked_sub(1)?;
        let is_key = match marks {
            [] => key == 1,
            [1] => key % 2 == 1,
            _ => false,
        };
        let outer = self.heap.items(self.stack[lists]).filter(|_| self.stack[lists].is_list())?;
        let is_watched = is_key
            && self.stack[0].is_dict()
            && self.heap.text(self.stack[key]) == Some(self.watch.key())
            && self.heap.items(self.stack[at]).is_some_and(<[_]>::is_empty);
        is_watched.then(|| outer.len() + at - lists - 1)
    }

    /// Gives the stack's entries from `from` on to the watcher.
    fn hand_over(&mut self, number: usize, from: usize) -> Result<(), Trouble> {
        let list = self.stack[from - 1];
        match self.watched.iter().find(|(known, at)| *known == list || *at == number) {
            Some(known) if *known != (list, number) => {
                let key = self.watch.key();
                return Err(Trouble::Wrong(format!("{key}[{number}] and {key}[{}] are one list", known.1)));
            }
            Some(_) => {}
            None => self.watched.push((list, number)),
        }
        self.watch.take_entries(&mut self.heap, number, &self.stack[from..]).map_err(Trouble::Refused)?;
        self.stack.truncate(from);
        self.heap.compact_if_worthwhile(&mut self.stack, &mut self.watched, &mut self.memo);
        Ok(())
    }

    /// Whether the lists whose entries were taken are where they were.
    fn is_as_watched(&self, root: Value) -> bool {
        let key = self.heap.find_text(self.watch.key());
        let outer =
            key.and_then(|key| self.heap.value_of(root, key)).and_then(|lists| self.heap.items(lists));
        let outer = outer.unwrap_or_default();
        self.watched.iter().all(|&(list, number)| outer.get(number) == Some(&list))
    }

    /// What lies below the last mark is out of reach.
    fn stack_floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn stack_top(&self) -> Result<Value, Trouble> {
        let above = self.stack.len() > self.stack_floor();
        self.stack.last().copied().filter(|_| above).ok_or_else(|| "the stack is empty".into())
    }
}

fn cut_short(opcode: u8) -> Trouble {
    let name = opcode::opcode_name(opcode).unwrap_or_default();
    Trouble::Wrong(format!("the pickle ends inside of {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches a key that no pickle has, or takes numbers.
    struct Numbers(&'static str, Vec<(usize, i128)>);

    impl Watch for Numbers {
        fn key(&self) -> &str {
            self.0
        }

        fn take_entries(
            &mut self,
            heap: &mut Heap,
            list: usize,
            entries: &[Value],
        ) -> Result<(), FormatError> {
            self.1.extend(entries.iter().map(|&entry| (list, heap.integer(entry).unwrap_or(-1))));
            entries.iter().for_each(|&entry| heap.take_dict(entry));
            Ok(())
        }
    }

    fn load(file: &str, input: &[u8]) -> Result<(Heap, Value), FormatError> {
        super::load_pickle(file, input, InputLimits::default(), &mut Numbers("", Vec::new()))
    }

    /// The whole numbers of a list.
    fn integers(heap: &Heap, list: Value) -> Vec<Option<i128>> {
        heap.items(list).expect("a list").iter().map(|&item| heap.integer(item)).collect()
    }

    fn error(bytes: &[u8]) -> String {
        load("p", bytes).map(|(_, root)| root.type_name()).expect_err("refused").to_string()
    }

    #[test]
    fn every_type_is_built() {
        // {"a": [1, 300, -2, 2**40, -1 (LONG1), 1.5, True, False, None, ("x",)], "b": ()} by protocol 4.
        let bytes = b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01M\x2c\x01J\xfe\xff\xff\xff\
            \x8a\x06\0\0\0\0\0\x01\x8a\x01\xffG\x3f\xf8\0\0\0\0\0\0\x88\x89N\x8c\x01x\x94\x85\x94eX\x01\0\0\0b)u.";
        let (mut heap, root) = load("p", &bytes[..]).expect("a pickle");
        let record = crate::formats::import::pickle::Fields::new(&mut heap, ["a", "b"])
            .read_record(&heap, root)
            .expect("a dict");
        assert_eq!(record.byte, 11);
        let items = heap.items(record.values[0].expect("there")).expect("a list");
        let numbers = integers(&heap, record.values[0].expect("there"));
        assert_eq!(numbers[..5], [Some(1), Some(300), Some(-2), Some(1 << 40), Some(-1)]);
        assert_eq!(numbers[5..], [None, Some(1), Some(0), None, None]);
        assert_eq!([5, 8].map(|item: usize| items[item].type_name()), ["float", "None"]);
        assert_eq!(heap.text(heap.items(items[9]).expect("a tuple")[0]), Some("x"));
        assert_eq!(heap.items(record.values[1].expect("there")).map(<[_]>::len), Some(0));
    }

    #[test]
    fn a_long_text_is_looked_through_once() {
        // {"k...k": [[None, None, ...]]}, entry by entry: is this list watched?
        let (length, count) = (100_000_u32, 1000);
        let mut bytes = b"}X".to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(b"k".repeat(100_000));
        bytes.extend(b"]]");
        bytes.extend(b"Na".repeat(count));
        bytes.extend(b"as.");
        let (heap, _) = load("p", &bytes[..]).expect("a pickle");
        assert_eq!(heap.looked_through, 100_000);
    }

    #[test]
    fn a_shared_value_is_one() {
        // [a, a] with a = [], which gets an entry after it was shared.
        let (heap, root) = load("p", &b"\x80\x02](]q\x01h\x01K\x07ae."[..]).expect("a pickle");
        let items = heap.items(root).expect("a list");
        assert_eq!((items.len(), items[0]), (2, items[1]));
        assert_eq!(integers(&heap, items[0]), [Some(7)]);
    }

    fn watched(bytes: &[u8]) -> Result<Vec<(usize, i128)>, String> {
        let mut watch = Numbers("k", Vec::new());
        super::load_pickle("p", bytes, InputLimits::default(), &mut watch)
            .map_err(|error| error.to_string())?;
        Ok(watch.1)
    }

    #[test]
    fn entries_are_taken_while_they_come() {
        // {"k": [[1, 2], [], [3]]}, by opcodes of several entries and of one.
        for bytes in [
            &b"\x80\x04}(\x8c\x01k](](K\x01K\x02e](e]K\x03aeu."[..],
            b"\x80\x04}\x8c\x01k](]K\x01aK\x02a](e](K\x03ees.",
            b"\x80\x04}(\x8c\x01j]K\x09a\x8c\x01k](](K\x01eK\x02a](e](K\x03eeu.",
        ] {
            assert_eq!(watched(bytes), Ok(vec![(0, 1), (0, 2), (2, 3)]));
        }
        // Not the value of the key of the outermost dict.
        assert_eq!(watched(b"}\x8c\x01j](](K\x01ees."), Ok(vec![]));
        assert_eq!(watched(b"]}\x8c\x01k](](K\x01eesa."), Ok(vec![]));
    }

    #[test]
    fn lists_that_were_taken_stay_where_they_were() {
        // {"k": [x, x]}, {"k": [x], "k": []}, {"k": [(x,)]}.
        let twice = b"}\x8c\x01k](]\x94(K\x01eh\x00(K\x02ees.";
        assert_eq!(watched(twice), Err("p: byte 17: k[1] and k[0] are one list".to_owned()));
        for bytes in [&b"}(\x8c\x01k](](K\x01ee\x8c\x01k]u."[..], b"}\x8c\x01k](](K\x01e\x85es."] {
            let error = watched(bytes).expect_err("refused");
            assert!(error.contains("`k` changes after it was complete"), "{error}");
        }
    }

    #[test]
    fn what_was_taken_is_not_there_again() {
        let error = watched(b"}\x8c\x01k](](}\x94eh\x00es.").expect_err("refused");
        assert!(error.contains("entry 0 of the memo is asked for, an event that was there"), "{error}");
    }

    #[test]
    fn code_is_refused_by_name() {
        for (bytes, reason) in [
            (&b"\x80\x04cos\nsystem\n."[..], "p: byte 2: the opcode GLOBAL is refused: it can run code"),
            (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "p: byte 14: the opcode STACK_GLOBAL is refused"),
            (b"NNR.", "p: byte 2: the opcode REDUCE is refused"),
            (b"}}b.", "p: byte 2: the opcode BUILD is refused"),
            (b"C\x01a.", "p: byte 0: the opcode SHORT_BINBYTES is refused: no recording"),
            (b"\x80\x06.", "p: byte 0: protocol 6"),
            (b"\xff.", "p: byte 0: 0xff is no opcode"),
        ] {
            let error = error(bytes);
            assert!(error.starts_with(reason), "{error}");
        }
    }

    #[test]
    fn nonsense_is_refused_where_it_stands() {
        for (bytes, reason) in [
            (&b""[..], "p: byte 0: the pickle ends without STOP"),
            (b".", "p: byte 0: the stack is empty"),
            (b"\x94", "p: byte 0: the stack is empty"),
            (b"h\x00.", "p: byte 0: entry 0 of the memo is asked for, which has 0"),
            (
                b"Nq\x00j\xff\xff\xff\xff.",
                "p: byte 3: entry 4294967295 of the memo is asked for, which has 1",
            ),
            (b"t.", "p: byte 0: there is no mark"),
            (b"]e.", "p: byte 1: there is no mark"),
            (b"](a.", "p: byte 2: the stack is too short"),
            (b"N\x86.", "p: byte 1: the stack is too short"),
            (b"NNa.", "p: byte 2: APPEND finds a value of type None"),
            (b"]NNs.", "p: byte 3: SETITEM finds a value of type list"),
            (b"}(Nu.", "p: byte 3: a key has no value"),
            (b"}]Ns.", "p: byte 3: a list or a dict is a key"),
            (b"\x8d\0\0\0\0\0\0\0\x80", "p: byte 0: a text of 9223372036854775808 bytes"),
            (b"\x8d\xff\xff\xff\x03\0\0\0\0..", "p: byte 0: the pickle ends inside of BINUNICODE8"),
            (b"X\x01\0\0\x04..", "p: byte 0: a text of 67108865 bytes: there are at most 67108864"),
            (b"X\0\0\0\x04..", "p: byte 0: the pickle ends inside of BINUNICODE"),
            (b"\x95\0\0\0\0\0\0\0\x80N.", "p: byte 0: a frame of 9223372036854775808 bytes"),
            (b"\x8b\0\0\0\x80N.", "p: byte 0: an integer of -2147483648 bytes"),
            (b"\x8a\x11", "p: byte 0: an integer of 17 bytes"),
            (b"\x8a\x04\x01", "p: byte 0: the pickle ends inside of LONG1"),
            (b"\x8c\x02a\xff.", "p: byte 0: byte 1 of the text is not UTF-8"),
            (b"N.N.", "p: byte 2: something follows the end"),
        ] {
            let error = error(bytes);
            assert!(error.starts_with(reason), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn few_bytes_take_no_more_memory_than_they_may() {
        for opcode in [b']', b'}', b')'] {
            let bytes = vec![opcode; 8 << 20];
            let (limits, mut watch) = (InputLimits::default(), Numbers("", Vec::new()));
            let mut machine = Machine::new(&bytes[..], limits, &mut watch);
            let mut at = 0;
            let trouble = loop {
                if let Err(trouble) = machine.perform_opcode(&mut at) {
                    break trouble;
                }
            };
            assert!(
                matches!(trouble, Trouble::Wrong(reason) if reason.contains("far more memory than the pickle is long"))
            );
            // A value takes 16 bytes at least, and 4 of them may be taken for a byte of the pickle.
            assert!(at <= SMALL / 12 + OFTEN, "{at}");
            let room = machine.room_bytes() as u64;
            assert!(room <= SMALL + TIMES * at + 64 * OFTEN, "{room}");
        }
        let error = error(&b"(".repeat(2000));
        assert_eq!(error, "p: byte 1000: more than 1000 marks are open");
    }

    #[test]
    fn a_recording_that_is_held_as_a_whole_takes_half_of_what_it_may() {
        for file in ["resnet50_b64_3it_early.pickle.zst", "resnet50_b64_3it_late.pickle.zst"] {
            let bytes = crate::recorded::data_file(&format!("samples/{file}")).expect("it is embedded");
            let mut watch = Numbers("", Vec::new());
            let mut machine = Machine::new(&bytes[..], InputLimits::default(), &mut watch);
            while machine.perform_opcode(&mut 0).is_ok_and(|root| root.is_none()) {}
            let (read, room) = (machine.bytes.bytes_read(), machine.room_bytes() as u64);
            assert_eq!(read, bytes.len() as u64, "{file}");
            assert!(2 * room <= TIMES * read, "{file}: {room} bytes for {read}");
        }
    }

    #[test]
    fn a_million_nested_lists_are_a_value() {
        let count = 1_000_000;
        let mut bytes = vec![b']'; count];
        bytes.extend(vec![b'a'; count - 1]);
        bytes.push(b'.');
        let (heap, mut value) = load("p", &bytes[..]).expect("a pickle");
        let mut depth = 1;
        while let Some([inner]) = heap.items(value) {
            (value, depth) = (*inner, depth + 1);
        }
        assert_eq!(depth, count);
    }

    #[test]
    fn a_circle_is_a_list_that_has_itself() {
        let (heap, root) = load("p", &b"]q\x00h\x00a."[..]).expect("a pickle");
        assert_eq!(heap.items(root), Some(&[root][..]));
    }

    #[test]
    fn a_sparse_memo_costs_no_more() {
        let (heap, root) =
            load("p", &b"K\x07r\xff\xff\xff\xff](j\xff\xff\xff\xff\x94h\x01e."[..]).expect("a pickle");
        assert_eq!(integers(&heap, root), [Some(7), Some(7)]);
    }
}
