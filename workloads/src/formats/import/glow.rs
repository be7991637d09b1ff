//! The requests that Glow's memory allocator is tested with: nets as `ALLOC ID SIZE` and `FREE ID` lines.
//!
//! A net begins with `MODEL NAME`; `ALIGN N` aligns its buffers; `MEM BYTES` is what Glow's allocator needs, and
//! `EFF RATIO` how much of it the load is at least. Every line that allocates or frees is a step.
//!
//! # References
//!
//! 1. Glow, `tests/unittests/MemoryAllocatorTestModels.txt`: the head of the file describes it.

use rustc_hash::FxHashMap;

use super::gather::{FoundBuffer, TraceGatherer, framework_with};
use super::{Dropped, Imported, Input, Part, Reader};
use crate::formats::error::quote_excerpt;
use crate::formats::input::numbers::whole;
use crate::formats::unique::UniqueNames;
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "glow",
    title: "Glow's nets as ALLOC and FREE lines",
    endings: &[],
    has_lines: true,
    looks_like,
    read: read_glow,
};

/// After comments comes one of the format's words, and no comma in its line.
fn looks_like(start: &[u8]) -> bool {
    let lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(b"#"));
    first.is_some_and(|line| {
        let is_word = |word: &&[u8]| line.starts_with(word);
        [&b"MODEL "[..], b"ALIGN ", b"ALLOC "].iter().any(is_word) && !line.contains(&b',')
    })
}

fn read_glow(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let mut lines = input.into_lines();
    let mut imported = Imported::default();
    let mut net: Option<Net> = None;
    let mut names = UniqueNames::new("#");
    while let Some((number, line)) = lines.next_line()? {
        let line = line.trim_ascii();
        if line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_ascii();
        if word == "MODEL" {
            finish_net(net.replace(Net::new(rest)), &mut names, &file, options, &mut imported)?;
            continue;
        }
        let net = net.get_or_insert_with(|| Net::new("net"));
        net.read_line(word, rest, number).map_err(|reason| FormatError::new(&file, number, reason))?;
    }
    finish_net(net, &mut names, &file, options, &mut imported)?;
    match imported.parts.is_empty() {
        true => Err(FormatError::new(file, 1, "there is no net in it")),
        false => Ok(imported),
    }
}

fn finish_net(
    net: Option<Net>,
    names: &mut UniqueNames,
    file: &str,
    options: &ReadOptions,
    imported: &mut Imported,
) -> Result<(), FormatError> {
    let Some(mut net) = net else { return Ok(()) };
    let name = names.make_unique(&net.name);
    // What is never freed lives to the end.
    for &(buffer, _) in net.ids.values().filter(|(_, live)| *live) {
        net.found[buffer].end = net.steps;
    }
    let part = net.build_part(name, file, options, &mut imported.dropped)?;
    imported.parts.push(part);
    Ok(())
}

/// A net half read.
#[derive(Default)]
struct Net {
    name: String,
    /// Line and bytes.
    align: Option<(u64, u64)>,
    found: Vec<FoundBuffer>,
    /// The buffer of each id, and whether it is live.
    ids: FxHashMap<String, (usize, bool)>,
    /// Lines that allocate or free.
    steps: u64,
    total: Option<u64>,
    efficiency: Option<String>,
}

impl Net {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn read_line(&mut self, word: &str, rest: &str, number: u64) -> Result<(), String> {
        match word {
            "ALLOC" => self.begin_buffer(rest, number)?,
            "FREE" => self.end_buffer(rest)?,
            "ALIGN" => self.align = Some((number, whole("the alignment", rest)?)),
            "MEM" => self.total = Some(whole("the memory", rest)?),
            "EFF" => {
                let ratio: f64 =
                    rest.parse().map_err(|_| format!("`{}` is no ratio", quote_excerpt(rest)))?;
                self.efficiency = Some(ratio.to_string());
            }
            other => {
                let words = "MODEL, ALIGN, ALLOC, FREE, MEM, EFF";
                return Err(format!("`{}` is not one of {words}", quote_excerpt(other)));
            }
        }
        Ok(())
    }

    fn begin_buffer(&mut self, rest: &str, number: u64) -> Result<(), String> {
        let (id, size) = rest.split_once(' ').ok_or("an ALLOC is `ALLOC ID SIZE`")?;
        let size = whole("the size", size.trim_ascii())?;
        if self.ids.insert(id.to_owned(), (self.found.len(), true)).is_some() {
            return Err(format!("the id `{}` was allocated before", quote_excerpt(id)));
        }
        self.found.push(FoundBuffer {
            name: id.to_owned(),
            start: self.steps,
            size,
            row: Some(number),
            ..FoundBuffer::default()
        });
        self.steps += 1;
        Ok(())
    }

    fn end_buffer(&mut self, id: &str) -> Result<(), String> {
        let Some((buffer, live @ true)) = self.ids.get_mut(id) else {
            return Err(format!("`{}` is freed, but it is not live", quote_excerpt(id)));
        };
        *live = false;
        self.found[*buffer].end = self.steps;
        self.steps += 1;
        Ok(())
    }

    fn build_part(
        self,
        name: String,
        file: &str,
        options: &ReadOptions,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        let mut gather = TraceGatherer::new(file, options);
        gather.set_metadata("framework", "Glow");
        gather.set_metadata("model", self.name);
        if let Some((line, bytes)) = self.align {
            gather.align_to(line, bytes)?;
        }
        self.efficiency.into_iter().for_each(|ratio| gather.set_metadata("efficiency", ratio));
        for found in self.found {
            gather.append_buffer(found);
        }
        gather.build_part(name, framework_with("Glow", self.total), dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::testing::{lives, parts, read, told};

    fn nets(text: &str) -> Result<Imported, FormatError> {
        read("nets.txt", text)
    }

    #[test]
    fn nets_are_parts_with_glows_own_total() {
        let text = "# words\nMODEL a b\nALIGN 64\nALLOC 1 100\nALLOC 2 10\nFREE 1\nALLOC 3 1\nFREE 2\nFREE 3\n\
                    MEM 192\nEFF 1.000000\nMODEL c\nALLOC 1 5\nFREE 1\n";
        let imported = nets(text).expect("valid");
        assert_eq!(parts(&imported), ["a b", "c"]);
        let part = &imported.parts[0];
        assert_eq!(lives(&part.trace), [("1", (0, 2), 128), ("2", (1, 4), 64), ("3", (3, 5), 64)]);
        assert_eq!(part.trace.instance.load().bytes.get(), 128 + 64);
        let total = part.framework.as_ref().and_then(|framework| framework.reserved_peak);
        assert_eq!(total.map(planlab_dsa::Bytes::get), Some(192));
        assert_eq!(part.trace.labels.meta_value("efficiency"), Some("1"));
    }

    #[test]
    fn nets_without_a_buffer_are_left_out() {
        let imported =
            nets("MODEL a\nALLOC 1 0\nMODEL b\nALLOC 1 4\nFREE 1\nMODEL c\n").expect("one has a buffer");
        assert_eq!(parts(&imported), ["b"]);
        let expected =
            ["1 buffers of no bytes: they need no place", "2 traces: no buffer in them needs a place: a, c"];
        assert_eq!(told(&imported), expected);
        let error = nets("MODEL a\nALLOC 1 0\nMODEL b\n").expect_err("nothing is left").to_string();
        assert_eq!(error, "nets.txt:1: there is no buffer in it that needs a place");
    }

    #[test]
    fn what_is_never_freed_lives_to_the_end() {
        let imported = nets("ALLOC 1 4\nALLOC 2 4\nFREE 1\n").expect("valid");
        assert_eq!(lives(&imported.parts[0].trace)[1], ("2", (1, 3), 4));
    }

    #[test]
    fn errors_have_their_line() {
        let error = |text: &str| nets(text).expect_err("bad").to_string();
        assert_eq!(error("MODEL a\nALLOC 1\n"), "nets.txt:2: an ALLOC is `ALLOC ID SIZE`");
        assert_eq!(error("MODEL a\nALLOC 1 x\n"), "nets.txt:2: the size `x` is not a whole number");
        assert_eq!(error("MODEL a\nALLOC 1 1\nALLOC 1 1\n"), "nets.txt:3: the id `1` was allocated before");
        assert_eq!(error("MODEL a\nFREE 1\n"), "nets.txt:2: `1` is freed, but it is not live");
        assert_eq!(error("MODEL a\nALIGN 0\nALLOC 1 1\n"), "nets.txt:2: the alignment is 0");
        assert_eq!(
            error("MODEL a\nMOVE 1\n"),
            "nets.txt:2: `MOVE` is not one of MODEL, ALIGN, ALLOC, FREE, MEM, EFF"
        );
        assert!(error("MODEL a\n").contains("there is no buffer in it"));
    }
}
