//! The debug log of ggml's graph allocator (llama.cpp), as a build with `GGML_ALLOCATOR_DEBUG` and `AT_PRINTF` prints it.
//!
//! A line `exec:` ends a step. What is allocated before it is live from that step on; what is freed behind it lived until
//! then. A node that takes its parent's place (`reusing parent`) is a buffer of its own that may overwrite the parent; the
//! tail of a larger parent is freed there. Sizes are those that the allocator rounded up. What is never freed lives to the
//! end of its graph.
//!
//! A log has many graphs and does not say where one ends. Three events begin the next: memory that is live is given out
//! again; the first tensor of the graph comes again at the start of the memory; ggml reports that it makes its buffer
//! again. Nor does the log say to which of several backends an address belongs; such a log is refused.
//!
//! # References
//!
//! 1. ggml, `src/ggml-alloc.c`: `ggml_dyn_tallocr_alloc`, `ggml_gallocr_allocate_node`, `ggml_gallocr_free_node`.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::gather::{FoundBuffer, TraceGatherer, framework_with};
use super::{Dropped, Imported, Input, Part, Reader};
use crate::formats::error::quote_excerpt;
use crate::formats::input::numbers::whole;
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "ggml",
    title: "the debug log of ggml's allocator (llama.cpp)",
    endings: &[],
    has_lines: true,
    looks_like,
    read: read_ggml,
};

/// Bytes that a line's names may have together: ggml's names have 64, and it puts some words behind them.
const LONGEST: usize = 1024;
/// What only a line of the allocator has.
const ALLOCATED: &str = " bytes) - block ";

/// A line of the allocator, which is no comment and no row of a CSV that quotes one.
fn looks_like(start: &[u8]) -> bool {
    let has = |part: &[u8], what: &str| part.windows(what.len()).any(|window| window == what.as_bytes());
    let is_ours = |line: &[u8]| {
        // Rows have commas, which comes to little to look at.
        let first = line.split(|&byte| byte == b',').next().unwrap_or_default();
        !first.starts_with(b"#")
            && !first.starts_with(b"\"")
            && has(first, "alloc: allocating ")
            && has(line, ALLOCATED)
    };
    start.split(|&byte| byte == b'\n').any(|line| is_ours(line.trim_ascii_start()))
}

fn read_ggml(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let mut lines = input.into_lines();
    let mut graphs: Vec<Graph> = Vec::new();
    let mut graph = Graph::default();
    while let Some((number, line)) = lines.next_line()? {
        let said = parse_line(line.trim_ascii()).map_err(|reason| FormatError::new(&file, number, reason))?;
        let Some(said) = said else { continue };
        if graph.ends_before(&said) {
            graphs.extend(Some(std::mem::take(&mut graph)).filter(|graph| graph.execs > 0));
        }
        graph.take_line(said, number).map_err(|reason| FormatError::new(&file, number, reason))?;
    }
    graphs.extend(Some(graph).filter(|graph| graph.execs > 0));
    if graphs.is_empty() {
        return Err(FormatError::new(file, 1, "no graph in it is run: there is no line `exec:`"));
    }
    let mut imported = Imported::default();
    for (number, graph) in graphs.into_iter().enumerate() {
        imported.parts.push(graph.build_part(number, &file, options, &mut imported.dropped)?);
    }
    Ok(imported)
}

/// A place in ggml's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChunkPlace {
    chunk: u64,
    offset: u64,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogLine<'l> {
    Alloc {
        name: &'l str,
        size: u64,
        place: ChunkPlace,
    },
    Free {
        name: &'l str,
        place: ChunkPlace,
    },
    /// `PARENT for NODE`, whose names may hold ` for ` themselves.
    Reuse {
        parent_for_node: &'l str,
    },
    /// Bytes, and `PARENT for NODE`.
    Shrink {
        extra: u64,
        parent_for_node: &'l str,
    },
    Exec,
    /// The buffer is made again.
    Anew,
}

/// What a line says, if it is one of the allocator's.
fn parse_line(line: &str) -> Result<Option<LogLine<'_>>, String> {
    let bad = || format!("`{}` is cut short, or not as ggml writes it", quote_excerpt(line));
    if let Some((_, exec)) = line.split_once("exec: ") {
        return Ok(exec.contains(") <=").then_some(LogLine::Exec));
    }
    if let Some((_, rest)) = line.split_once("allocating ")
        && let Some((tensor, place)) = rest.split_once(ALLOCATED)
    {
        let (name, size) = tensor.rsplit_once(" (").ok_or_else(bad)?;
        // `block 0, offset 64, chunk 0`; older: `block 0, offset 64`.
        let mut numbers = place.split(", ").skip(1);
        let offset = numbers.next().and_then(|text| text.strip_prefix("offset ")).ok_or_else(bad)?;
        let chunk = numbers.next().and_then(|text| text.strip_prefix("chunk ")).unwrap_or("0");
        let place = ChunkPlace { chunk: whole("the chunk", chunk)?, offset: whole("the offset", offset)? };
        return Ok(Some(LogLine::Alloc { name, size: whole("the size", size)?, place }));
    }
    if let Some((_, rest)) = line.split_once("freeing extra ") {
        let (extra, parent_for_node) = rest.split_once(" bytes from parent ").ok_or_else(bad)?;
        return Ok(Some(LogLine::Shrink { extra: whole("the bytes", extra)?, parent_for_node }));
    }
    if let Some((_, rest)) = line.split_once(": freeing ") {
        let (tensor, _) = rest.rsplit_once(" bytes) - n_free_blocks").ok_or_else(bad)?;
        let (tensor, _) = tensor.rsplit_once(" (").ok_or_else(bad)?;
        let (name, place) = tensor.rsplit_once(" at ").ok_or_else(bad)?;
        // `{chunk=0, offset=64}`; older: `64`.
        let inner = place.strip_prefix("{chunk=").and_then(|place| place.strip_suffix('}'));
        let (chunk, offset) = match inner {
            Some(inner) => inner.split_once(", offset=").ok_or_else(bad)?,
            None => ("0", place),
        };
        let place = ChunkPlace { chunk: whole("the chunk", chunk)?, offset: whole("the offset", offset)? };
        return Ok(Some(LogLine::Free { name, place }));
    }
    for words in ["reusing parent ", "reusing view parent "] {
        if let Some((before, rest)) = line.split_once(words)
            && !before.ends_with("not ")
        {
            return Ok(Some(LogLine::Reuse { parent_for_node: rest }));
        }
    }
    let again = line.contains("ggml_gallocr_") && line.contains("reallocating ");
    Ok(again.then_some(LogLine::Anew))
}

/// A buffer of a graph.
struct Tensor {
    found: FoundBuffer,
    place: ChunkPlace,
    is_live: bool,
    /// The parent whose place it took.
    parent: Option<usize>,
}

/// A graph half read.
#[derive(Default)]
struct Graph {
    tensors: Vec<Tensor>,
    /// Live buffers, by place; no two overlap.
    live: BTreeMap<ChunkPlace, usize>,
    /// The same by name. Names come again.
    named: FxHashMap<String, BTreeSet<usize>>,
    /// Tensors without bytes.
    empty: FxHashSet<String>,
    /// Lines `exec:` so far.
    execs: u64,
    is_over: bool,
}

impl Graph {
    /// Whether the next graph begins with a line.
    fn ends_before(&self, said: &LogLine<'_>) -> bool {
        let &LogLine::Alloc { name, size, place } = said else { return false };
        let is_first = || {
            let first = self.tensors.first().map(|tensor| (tensor.found.name.as_str(), tensor.place));
            self.execs > 0 && first == Some((name, place))
        };
        let overlaps = || {
            // Of those that begin below its end only the last can reach it.
            let below = ChunkPlace { offset: place.offset.saturating_add(size), ..place };
            let last = self.live.range(..below).next_back().map(|(_, &tensor)| &self.tensors[tensor]);
            last.is_some_and(|last| {
                let end = last.place.offset.saturating_add(last.found.size);
                last.place.chunk == place.chunk && end > place.offset
            })
        };
        self.is_over || is_first() || overlaps()
    }

    fn take_line(&mut self, said: LogLine<'_>, row: u64) -> Result<(), String> {
        match said {
            LogLine::Exec => self.execs += 1,
            LogLine::Anew => self.is_over = self.execs > 0,
            LogLine::Alloc { name, size, place } => self.add_tensor(name, size, place, None, row),
            LogLine::Free { name, place } => self.free_tensor(name, place)?,
            LogLine::Reuse { parent_for_node } => self.reuse_parent(parent_for_node, row)?,
            LogLine::Shrink { extra, parent_for_node } => {
                // The line follows that of the reuse, whose node is the last tensor.
                let last = self.tensors.last_mut().filter(|last| last.parent.is_some());
                let last = last.filter(|last| parent_for_node.ends_with(&last.found.name));
                let shrunk = last.and_then(|last| Some((last.found.size.checked_sub(extra)?, last)));
                let Some((size, last)) = shrunk else {
                    return Err("bytes of a parent are freed that no node has just taken".to_owned());
                };
                last.found.size = size;
            }
        }
        Ok(())
    }

    fn add_tensor(&mut self, name: &str, size: u64, place: ChunkPlace, parent: Option<usize>, row: u64) {
        let found = FoundBuffer {
            name: name.to_owned(),
            start: self.execs,
            size,
            place: Some(place.offset),
            row: Some(row),
            ..FoundBuffer::default()
        };
        // ggml may give out nothing for a tensor without bytes.
        if size > 0 {
            // Where the log has a hole, the one that was there is freed nowhere.
            if let Some(gone) = self.live.insert(place, self.tensors.len()) {
                self.forget_name(gone);
            }
            self.named.entry(name.to_owned()).or_default().insert(self.tensors.len());
        } else {
            self.empty.insert(name.to_owned());
        }
        self.tensors.push(Tensor { found, place, is_live: size > 0, parent });
    }

    fn free_tensor(&mut self, name: &str, place: ChunkPlace) -> Result<(), String> {
        let known = self.live.get(&place).filter(|&&tensor| self.tensors[tensor].found.name == name);
        let Some(&tensor) = known else {
            if self.empty.contains(name) {
                return Ok(());
            }
            return Err(format!(
                "`{}` is freed at {}, where it is not: a log of several backends does not say whose memory is meant",
                quote_excerpt(name),
                place.offset
            ));
        };
        self.live.remove(&place);
        self.forget_name(tensor);
        self.tensors[tensor].is_live = false;
        self.tensors[tensor].found.end = self.execs;
        Ok(())
    }

    /// Takes a tensor off the index by name.
    fn forget_name(&mut self, tensor: usize) {
        if let Some(named) = self.named.get_mut(&self.tensors[tensor].found.name) {
            named.remove(&tensor);
        }
    }

    /// The live tensor that a line calls `shown`: by its name, or as `VIEW (NAME)`. Names come again; the last is meant.
    fn find_owner(&self, shown: &str) -> Option<usize> {
        let live = |name: &str| self.named.get(name)?.last().copied();
        let inside = shown.strip_suffix(')').unwrap_or_default();
        let views = inside.match_indices(" (").filter_map(|(at, mark)| live(&inside[at + mark.len()..]));
        views.chain(live(shown)).max()
    }

    /// `PARENT for NODE`, or `VIEW (PARENT) for NODE`.
    fn reuse_parent(&mut self, parent_for_node: &str, row: u64) -> Result<(), String> {
        if parent_for_node.len() > LONGEST {
            return Err(format!("`{}` is longer than two names of ggml's", quote_excerpt(parent_for_node)));
        }
        let cuts = parent_for_node.match_indices(" for ");
        let split = cuts.map(|(at, cut)| (&parent_for_node[..at], &parent_for_node[at + cut.len()..]));
        let found = split.into_iter().find_map(|(shown, node)| Some((self.find_owner(shown)?, node)));
        let Some((parent, node)) = found else {
            return Err(format!("`{}`: the parent is not live", quote_excerpt(parent_for_node)));
        };
        let (size, place) = (self.tensors[parent].found.size, self.tensors[parent].place);
        self.tensors[parent].is_live = false;
        self.tensors[parent].found.end = self.execs + 1;
        self.live.remove(&place);
        self.forget_name(parent);
        self.add_tensor(node, size, place, Some(parent), row);
        Ok(())
    }

    fn build_part(
        mut self,
        number: usize,
        file: &str,
        options: &ReadOptions,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        let mut gather = TraceGatherer::new(file, options);
        gather.set_metadata("framework", "ggml");
        gather.set_metadata("clock", "nodes");
        let one_chunk = self.tensors.iter().all(|tensor| tensor.place.chunk == 0);
        let mut tops: BTreeMap<u64, u64> = BTreeMap::new();
        for tensor in &self.tensors {
            let top = tops.entry(tensor.place.chunk).or_default();
            *top = (*top).max(tensor.place.offset.saturating_add(tensor.found.size));
        }
        let mut numbers = Vec::new();
        for tensor in &mut self.tensors {
            let mut found = std::mem::take(&mut tensor.found);
            if tensor.is_live {
                found.end = self.execs.max(found.start + 1);
            }
            found.place = found.place.filter(|_| one_chunk);
            let buffer = gather.append_buffer(found);
            if let (Some(output), Some(Some(input))) = (buffer, tensor.parent.map(|parent| numbers[parent])) {
                gather.may_overwrite(output, input);
            }
            numbers.push(buffer);
        }
        if !one_chunk {
            let why = "ggml's own placement is not one arena; it is left out";
            dropped.push(Dropped::new(tops.len() as u64, "chunks of memory", why));
        }
        let total = tops.into_values().fold(0, u64::saturating_add);
        gather.build_part(format!("graph-{number}"), framework_with("ggml", Some(total)), dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::testing::{lives, read};

    /// Two graphs; in the first, `c` takes the place of `a`, which is larger.
    const LOG: &str = "llama: hello\n\
        ggml_dyn_tallocr_alloc: allocating x (input) (64 bytes) - block 0, offset 0, chunk 0\n\
        ggml_dyn_tallocr_alloc: allocating a (96 bytes) - block 0, offset 64, chunk 0\n\
        exec: MUL_MAT (a) <= w, x (input)\n\
        parent x (input): 1 children, 0 views, allocated: 1\n\n\
        not reusing parent w for b as 0x55 is external\n\
        ggml_dyn_tallocr_alloc: allocating b (32 bytes) - block 0, offset 160, chunk 0\n\
        exec: MUL (b) <= x (input), w\n\
        ggml_gallocr_free_node: freeing x (input) at {chunk=0, offset=0} (60 bytes) - n_free_blocks = 1\n\
        reusing parent a for c\n\
        freeing extra 32 bytes from parent a for c\n\
        exec: ADD (c) <= a, b\n\
        ggml_gallocr_free_node: freeing b at {chunk=0, offset=160} (32 bytes) - n_free_blocks = 2\n\
        ggml_dyn_tallocr_alloc: allocating x (input) (64 bytes) - block 0, offset 0\n\
        exec: SCALE (x (input)) <= w\n";

    fn read_log(text: &str) -> Result<Imported, FormatError> {
        read("debug.log", text)
    }

    #[test]
    fn graphs_are_parts_and_places_are_handed_over() {
        let imported = read_log(LOG).expect("valid");
        assert_eq!(imported.parts.len(), 2);
        let trace = &imported.parts[0].trace;
        assert_eq!(
            lives(trace),
            [("x (input)", (0, 2), 64), ("a", (0, 3), 96), ("b", (1, 3), 32), ("c", (2, 3), 64),]
        );
        assert_eq!(trace.instance.in_place().len(), 1);
        let framework = imported.parts[0].framework.as_ref().expect("ggml");
        assert_eq!(framework.placement, [Some(0), Some(64), Some(160), Some(64)]);
        assert_eq!(framework.reserved_peak.map(planlab_dsa::Bytes::get), Some(192));
    }

    #[test]
    fn lines_of_both_versions_are_read() {
        let place = ChunkPlace { chunk: 0, offset: 128 };
        let old = "ggml_tallocr_alloc: allocating Qcur-0 (view) (4096 bytes) - block 1, offset 128";
        assert_eq!(parse_line(old), Ok(Some(LogLine::Alloc { name: "Qcur-0 (view)", size: 4096, place })));
        let old = "ggml_gallocr_free_node: freeing Qcur-0 at 128 (4000 bytes) - n_free_blocks = 1";
        assert_eq!(parse_line(old), Ok(Some(LogLine::Free { name: "Qcur-0", place })));
        assert_eq!(parse_line("not reusing parent a for b as it is an output"), Ok(None));
        assert_eq!(parse_line("parent a: 0 children, 0 views, allocated: 1"), Ok(None));
        assert!(parse_line("ggml_gallocr_free_node: freeing a at {chunk=0").is_err());
    }

    #[test]
    fn a_view_hands_on_the_place_of_its_owner() {
        let log = "x_alloc: allocating a (64 bytes) - block 0, offset 0, chunk 0\nexec: RELU (a) <= w\n\
                   reusing view parent a (view) (a) for b for all\nexec: ADD (b for all) <= a (view)\n";
        let imported = read_log(log).expect("valid");
        let names: Vec<&str> =
            imported.parts[0].trace.labels.buffers.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["a", "b for all"]);
    }

    #[test]
    fn of_owners_with_one_name_the_last_that_is_live_is_meant() {
        let alloc = |name: &str, at: u64| {
            format!("x_alloc: allocating {name} (64 bytes) - block 0, offset {at}, chunk 0\n")
        };
        let exec = "exec: RELU (x) <= w\n";
        let free = "g: freeing a at {chunk=0, offset=64} (64 bytes) - n_free_blocks = 1\n";
        let log = [
            &alloc("a", 0),
            &alloc("a", 64),
            &alloc("v (a)", 128),
            exec,
            // Of the three that this may be, the last.
            "reusing parent v (a) for b\n",
            exec,
            free,
            "reusing view parent v (a) for c\n",
            exec,
        ]
        .concat();
        let imported = read_log(&log).expect("valid");
        let placement = &imported.parts[0].framework.as_ref().expect("ggml").placement;
        assert_eq!(placement, &[Some(0), Some(64), Some(128), Some(128), Some(0)]);
        let lives = lives(&imported.parts[0].trace);
        assert_eq!(lives[3..], [("b", (1, 3), 64), ("c", (2, 3), 64)]);
    }

    #[test]
    fn many_live_buffers_are_not_looked_at_one_by_one() {
        use std::fmt::Write;

        let mut log = String::new();
        for at in 0..60_000 {
            let _ =
                writeln!(log, "x_alloc: allocating n{at} (64 bytes) - block 0, offset {}, chunk 0", 64 * at);
        }
        log.push_str("exec: RELU (x) <= w\n");
        for at in 0..60_000 {
            let _ = writeln!(
                log,
                "reusing parent n{at} for m{at}\nfreeing extra 32 bytes from parent n{at} for m{at}"
            );
        }
        log.push_str("exec: RELU (x) <= w\n");
        let stopwatch = planlab_dsa::testing::Stopwatch::start();
        let imported = read_log(&log).expect("valid");
        assert_eq!(imported.parts[0].trace.instance.in_place().len(), 60_000);
        // One by one it takes minutes.
        stopwatch.assert_within(std::time::Duration::from_secs(20));
    }

    #[test]
    fn errors_have_their_line() {
        let refused = |log: &str| read_log(log).expect_err("bad").to_string();
        let long = format!("{LOG}reusing parent {} for b\n", "a".repeat(2000));
        assert!(refused(&long).contains("longer than two names"));
        let alloc = "x_alloc: allocating a (64 bytes) - block 0, offset 0, chunk 0\n";
        let error = |text: &str| refused(&format!("{alloc}{text}"));
        assert!(error("").contains("there is no line `exec:`"));
        let free = "g: freeing b at {chunk=0, offset=0} (64 bytes) - n_free_blocks = 1\n";
        assert!(error(free).starts_with("debug.log:2: `b` is freed at 0, where it is not"));
        assert_eq!(error("reusing parent z for b\n"), "debug.log:2: `z for b`: the parent is not live");
        let extra = "freeing extra 4 bytes from parent a for b\n";
        assert!(error(extra).starts_with("debug.log:2: bytes of a parent"));
    }
}
