//! Frames of call stacks as a line each, and which of them to name a buffer by.

use rustc_hash::FxHashMap;

use crate::formats::error::{LONGEST, clip_to_cell};
use crate::formats::import::pickle::{Fields, Heap, Value};
use crate::formats::import::{Dropped, Stack};

/// Frames of a stack that are kept: what recordings share, a hostile one shares a million times.
const DEEPEST: usize = 64;
/// Bytes of a path that are looked at: its last. Linux opens none that is longer.
const PATH: usize = 4096;
/// Bytes of the lines of a device's frames: two hundred thousand lines of 80 letters. A frame of 20 bytes may have a line of
/// hundreds.
const MOST_LINES: usize = 16 << 20;

/// Reads the stacks of a snapshot, each once.
pub(crate) struct Stacks {
    fields: Fields<3>,
    /// By the list of its frames.
    known: FxHashMap<Value, Option<u32>>,
    /// By its dict.
    known_frames: FxHashMap<Value, u32>,
    /// Of the heap in which they are known by these values.
    generation: u64,
    by_text: FxHashMap<String, u32>,
    /// Bytes of these lines, and frames that were left out since they are too many.
    lines: usize,
    left_out: u64,
    by_frames: FxHashMap<Stack, u32>,
    pub(crate) found: NamedStacks,
}

/// Stacks, and for each the frame that a buffer is named by.
#[derive(Default)]
pub(crate) struct NamedStacks {
    pub(crate) frames: Vec<String>,
    /// Of each frame, whether it is neither PyTorch's nor compiled code.
    users: Vec<bool>,
    pub(crate) all: Vec<Stack>,
}

impl NamedStacks {
    /// The frame of a stack to name a buffer by: the innermost that is not PyTorch's own.
    pub(crate) fn naming_frame(&self, stack: u32) -> Option<String> {
        let frames = self.all.get(stack as usize)?;
        let users = frames.iter().find(|&&frame| self.users[frame as usize]);
        users.or_else(|| frames.first()).map(|&frame| self.frames[frame as usize].clone())
    }

    /// The frames of a stack.
    pub(crate) fn stack_frames(&self, stack: Option<u32>) -> Vec<String> {
        let stack = stack.and_then(|stack| self.all.get(stack as usize));
        let frames = stack.into_iter().flat_map(|stack| &**stack);
        frames.map(|&frame| self.frames[frame as usize].clone()).collect()
    }
}

impl Stacks {
    pub(crate) fn new(heap: &mut Heap) -> Self {
        Self {
            fields: Fields::new(heap, ["name", "filename", "line"]),
            known: FxHashMap::default(),
            known_frames: FxHashMap::default(),
            generation: heap.generation(),
            by_text: FxHashMap::default(),
            lines: 0,
            left_out: 0,
            by_frames: FxHashMap::default(),
            found: NamedStacks::default(),
        }
    }

    /// The number of the stack that a list of frames is; `None` without frames.
    pub(crate) fn stack_number(&mut self, heap: &Heap, frames: Option<Value>) -> Option<u32> {
        let list = frames?;
        if self.generation != heap.generation() {
            self.generation = heap.generation();
            self.known.clear();
            self.known_frames.clear();
        }
        if let Some(&known) = self.known.get(&list) {
            return known;
        }
        let items = heap.items(list)?;
        let frames: Stack =
            items.iter().take(DEEPEST).filter_map(|&frame| self.frame_number(heap, frame)).collect();
        let number = (!frames.is_empty()).then(|| {
            *self.by_frames.entry(frames).or_insert_with_key(|frames| {
                self.found.all.push(frames.clone());
                index_number(self.found.all.len() - 1)
            })
        });
        self.known.insert(list, number);
        number
    }

    /// Frames that are in no stack, if there are any.
    pub(crate) fn left_out(&self) -> Option<Dropped> {
        let why = "the lines of the others take 16 MiB";
        Dropped::from_count(self.left_out, "frames of call stacks", why)
    }

    fn frame_number(&mut self, heap: &Heap, value: Value) -> Option<u32> {
        if let Some(&known) = self.known_frames.get(&value) {
            return Some(known);
        }
        let [name, file, line] = self.fields.read_record(heap, value)?.values;
        let text = |value: Option<Value>| value.and_then(|value| heap.text(value)).unwrap_or("");
        let line = line.and_then(|line| heap.whole(line)).unwrap_or(0);
        let (name, file) = (text_head(text(name)), path_tail(text(file)));
        let short = short_path(file);
        let shown = match line {
            0 => clip_to_cell(&format!("{short} {name}")),
            line => clip_to_cell(&format!("{short}:{line} {name}")),
        };
        if !self.by_text.contains_key(&shown) {
            if self.lines + shown.len() > MOST_LINES {
                self.left_out += 1;
                return None;
            }
            self.lines += shown.len();
        }
        let found = &mut self.found;
        let frame = *self.by_text.entry(shown).or_insert_with_key(|shown| {
            found.frames.push(shown.clone());
            found.users.push(is_users(file, short));
            index_number(found.frames.len() - 1)
        });
        self.known_frames.insert(value, frame);
        Some(frame)
    }
}

/// An index; a pickle has room for no more values than that.
fn index_number(index: usize) -> u32 {
    u32::try_from(index).expect("a pickle has at most 2^32 entries")
}

/// Whether a frame is neither PyTorch's nor compiled code.
fn is_users(file: &str, short: &str) -> bool {
    let is_python = file.ends_with(".py") || file.starts_with('<');
    is_python && !short.starts_with("torch/")
}

/// The beginning of a text, one letter more than [`clip_to_cell`] shows. A million frames may share a text of any length.
fn text_head(text: &str) -> &str {
    text.char_indices().nth(LONGEST + 1).map_or(text, |(end, _)| &text[..end])
}

/// The end of a path.
fn path_tail(path: &str) -> &str {
    &path[path.ceil_char_boundary(path.len().saturating_sub(PATH))..]
}

/// A path from where packages are installed, or its last two names.
fn short_path(path: &str) -> &str {
    for packages in ["site-packages/", "dist-packages/"] {
        if let Some(at) = path.rfind(packages) {
            return &path[at + packages.len()..];
        }
    }
    match path.rmatch_indices('/').nth(1) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_their_package() {
        for (path, shown, users) in [
            ("/usr/lib/python3/dist-packages/torch/nn/modules/conv.py", "torch/nn/modules/conv.py", false),
            ("site-packages/torchvision/models/resnet.py", "torchvision/models/resnet.py", true),
            ("/home/me/project/train.py", "project/train.py", true),
            ("t11.py", "t11.py", true),
            ("<stdin>", "<stdin>", true),
            ("??", "??", false),
            ("/build/c10/cuda/CUDACachingAllocator.cpp", "cuda/CUDACachingAllocator.cpp", false),
        ] {
            assert_eq!((short_path(path), is_users(path, short_path(path))), (shown, users), "{path}");
        }
    }

    #[test]
    fn a_frame_looks_at_a_part_of_long_texts() {
        let long = "é".repeat(1 << 20);
        assert_eq!((text_head(&long).len(), path_tail(&long).len()), (2 * LONGEST + 2, PATH));
        assert_eq!(path_tail(&format!("{long}x")).len(), PATH - 1);
        assert_eq!((text_head("name"), path_tail("a/b.py")), ("name", "a/b.py"));
        assert_eq!(clip_to_cell(text_head(&long)), clip_to_cell(&long));
    }
}
