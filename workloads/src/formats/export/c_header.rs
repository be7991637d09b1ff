//! A C header with the offsets of a plan, for firmware that has one arena of static memory.

use std::fmt::Display;

use planlab_dsa::{BufferId, Plan, printable_line};

use super::heights;
use crate::formats::unique::UniqueNames;
use crate::formats::{ExportError, Trace};

/// A C header (C99 and C++): the arena's size and alignment, a macro with the offset of each buffer, and tables of
/// offsets and sizes in the trace's order. If buffers take the place of others that are still live, a macro counts them,
/// comments name both of each pair, and a table says which buffer each overwrites (-1: none). Names begin with `prefix`. Letters that C does not know become `_`; names that C
/// or C++ keep for themselves (`__`, a leading `_`) and those that no name begins with (digits) are mended.
///
/// # Errors
///
/// [`ExportError`] for several arenas.
///
/// # Panics
///
/// If the plan does not belong to the trace.
pub fn write_c_header(trace: &Trace, plan: &Plan, prefix: &str) -> Result<Vec<u8>, ExportError> {
    if trace.instance.arenas().len() > 1 {
        return Err(ExportError::new("a C header", "which arena a buffer lies in"));
    }
    let height = heights(trace, plan).first().map_or(0, |height| height.get());
    let buffers = trace.instance.buffers();
    let alignment = buffers.iter().map(|buffer| buffer.align.get()).max().unwrap_or(1);
    let (kind, ending) = if u32::try_from(height).is_ok() { ("uint32_t", "u") } else { ("uint64_t", "ull") };
    let prefix = identifier_start(prefix).to_ascii_uppercase();
    let mut names = UniqueNames::new("_");
    let mut out = String::with_capacity(96 * buffers.len() + 1024);
    let workload = trace.labels.meta_value("workload");
    let workload = workload.map_or(String::new(), |name| format!(" of {}", comment_text(name)));
    out += &format!("/* Offsets{workload}, made by `planlab export c-header`. */\n");
    out += &format!("#ifndef {prefix}_PLAN_H\n#define {prefix}_PLAN_H\n\n#include <stdint.h>\n\n");
    out += &format!("#define {prefix}_ARENA_SIZE {height}{ending}\n");
    out += &format!("#define {prefix}_ARENA_ALIGNMENT {alignment}u\n");
    out += &format!("#define {prefix}_BUFFERS {}u\n\n", buffers.len());
    if !plan.in_place.is_empty() {
        let about = "buffers that overwrite one that is still live: their kernels must be safe in place";
        out += &format!("/* {about} */\n#define {prefix}_IN_PLACE {}u\n\n", plan.in_place.len());
    }
    let shares = shared_addresses(trace, plan);
    for (((buffer, label), offset), shares) in
        buffers.iter().zip(&trace.labels.buffers).zip(&plan.offsets).zip(&shares)
    {
        let name = names.make_unique(&c_identifier(&label.name));
        let (lower, upper) = <(u32, u32)>::from(buffer.live);
        let about = comment_text(&label.name);
        out += &format!(
            "#define {prefix}_OFFSET_{name} {offset}{ending} /* {about}: steps [{lower}, {upper}){shares} */\n"
        );
    }
    let prefix = prefix.to_ascii_lowercase();
    let offsets: Vec<u64> = plan.offsets.iter().map(|offset| offset.get()).collect();
    let sizes = buffers.iter().map(|buffer| buffer.size.get()).collect();
    for (name, values) in [("offset", offsets), ("size", sizes)] {
        write_table(&mut out, &format!("{kind} {prefix}_{name}"), ending, values);
    }
    if !plan.in_place.is_empty() {
        let mut overwrites = vec![-1; buffers.len()];
        plan.in_place.iter().for_each(|pair| overwrites[pair.output.index()] = i64::from(pair.input.get()));
        write_table(&mut out, &format!("int32_t {prefix}_overwrites"), "", overwrites);
    }
    out += "\n#endif\n";
    Ok(out.into_bytes())
}

/// Writes an array; `declared` is its type and name. C knows no array of no elements, so an empty one has a 0.
fn write_table<N: Display>(
    out: &mut String,
    declared: &str,
    ending: &str,
    values: impl IntoIterator<Item = N, IntoIter: ExactSizeIterator>,
) {
    let values = values.into_iter();
    let count = values.len();
    *out += &format!("\nstatic const {declared}[{}] = {{\n", count.max(1));
    values.for_each(|value| *out += &format!("    {value}{ending},\n"));
    *out += if count == 0 { "    0\n};\n" } else { "};\n" };
}

/// For the comment of each buffer: what it shares addresses with while both are live.
fn shared_addresses(trace: &Trace, plan: &Plan) -> Vec<String> {
    let mut shares = vec![String::new(); trace.instance.len()];
    let name = |id: BufferId| comment_text(&trace.labels.buffers[id.index()].name);
    for pair in &plan.in_place {
        let step = trace.instance.buffer(pair.output).live.start();
        shares[pair.output.index()] += &format!("; overwrites {} in place at step {step}", name(pair.input));
        shares[pair.input.index()] +=
            &format!("; overwritten in place by {} at step {step}", name(pair.output));
    }
    shares
}

/// A part of a name: letters that C knows, and single `_` between them. Two in a row are the compiler's, as is one in
/// front; with what it is joined to, each part begins and ends with something else.
fn c_identifier(text: &str) -> String {
    let is_known = |letter: char| letter.is_ascii_alphanumeric();
    let parts: Vec<&str> = text.split(|letter| !is_known(letter)).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "unnamed".to_owned() } else { parts.join("_") }
}

/// The part that a name begins with, which is no digit. Others follow it, so that no name is a keyword.
fn identifier_start(text: &str) -> String {
    let name = c_identifier(text);
    if name.starts_with(|letter: char| letter.is_ascii_digit()) { format!("n{name}") } else { name }
}

/// A text that ends no comment and continues no line.
fn comment_text(text: &str) -> String {
    printable_line(&text.replace("*/", "* /").replace("/*", "/ *").replace('\\', " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::formats::export::testing::planned;

    #[test]
    fn names_are_of_c_and_no_two_the_same() {
        let mut names = UniqueNames::new("_");
        let unique = ["a.b", "a-b", "_a__b_", "a_b_2", "ä", "", "2x", "int"]
            .map(|name| names.make_unique(&c_identifier(name)));
        assert_eq!(unique, ["a_b", "a_b_2", "a_b_3", "a_b_2_2", "unnamed", "unnamed_2", "2x", "int"]);
        let starts = ["_net__1", "1net", "_Net", "--"].map(identifier_start);
        assert_eq!(starts, ["net_1", "n1net", "Net", "unnamed"]);
        assert_eq!(comment_text("a */ b /* c\\\n"), "a * / b / * c \\u{a}");
        assert_eq!(comment_text("\u{202e}*/ int x;"), "\\u{202e}* / int x;");
    }

    /// The compiler reads the header, and a program prints what it found there.
    #[test]
    fn a_c_compiler_reads_the_offsets() {
        let (trace, plan) = planned();
        let header = write_c_header(&trace, &plan, "my net").expect("one arena");
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("plan.h"), header).expect("writable");
        let program = "#include <stdio.h>\n#include \"plan.h\"\nstatic unsigned char arena[MY_NET_ARENA_SIZE];\n\
                       int main(void) {\n  printf(\"%u %u %u %u:\", (unsigned)sizeof arena, MY_NET_ARENA_ALIGNMENT,\n\
                       MY_NET_BUFFERS, MY_NET_OFFSET_b_quoted);\n  for (unsigned i = 0; i < MY_NET_BUFFERS; i++)\n\
                       printf(\" %u+%u over %d\", (unsigned)my_net_offset[i], (unsigned)my_net_size[i],\n\
                       (int)my_net_overwrites[i]);\n  return (int)MY_NET_IN_PLACE - 1;\n}\n";
        std::fs::write(at("plan.c"), program).expect("writable");
        let compiler = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
            .args([at("plan"), at("plan.c")])
            .output();
        let compiled = compiler.expect("a C compiler, which ./setup installs");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let ran = Command::new(at("plan")).output().expect("it runs");
        assert!(ran.status.success(), "one buffer overwrites another");
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(printed, "96 16 3 64: 0+64 over -1 64+32 over -1 0+48 over 0");
    }
}
