//! What a program was at, by time: `Optimizer.step#SGD.step`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::formats::error::clip_to_cell;
use crate::formats::import::pickle::{Fields, Heap, Value};

/// Reads annotations.
pub(crate) type Marks = Fields<4>;

/// Their keys.
pub(crate) const MARK: [&str; 4] = ["stage", "name", "device", "time_us"];

/// The annotations of a device, read forward.
pub(crate) struct Annotations<'h> {
    heap: &'h Heap,
    /// Time, whether it begins, name; in the order of the file, which is that of time.
    marks: Vec<(u64, bool, Value)>,
    next: usize,
    open: Vec<Value>,
    names: FxHashMap<Value, Arc<str>>,
}

impl<'h> Annotations<'h> {
    /// Deeper ones are passed by.
    const DEEPEST: usize = 64;

    pub(crate) fn new(heap: &'h Heap, fields: &mut Marks, list: Option<Value>, device: u64) -> Self {
        let items = list.and_then(|list| heap.items(list)).unwrap_or_default();
        // They name buffers and no more: one that makes no sense costs no file.
        let mut mark = |&value: &Value| {
            let [stage, name, on, time] = fields.read_record(heap, value)?.values;
            let begins = match heap.text(stage?)? {
                "START" => true,
                "END" => false,
                _ => return None,
            };
            (heap.whole(on?)? == device).then_some((heap.whole(time?)?, begins, name?))
        };
        let marks = items.iter().filter_map(&mut mark).collect();
        Self { heap, marks, next: 0, open: Vec::new(), names: FxHashMap::default() }
    }

    /// The innermost one at a time, which is not before that of the call before.
    pub(crate) fn innermost_at(&mut self, time: u64) -> Option<Arc<str>> {
        while let Some(&(_, begins, name)) = self.marks.get(self.next).filter(|(at, ..)| *at <= time) {
            self.next += 1;
            if begins {
                self.open.push(name);
            } else if let Some(at) = self.open.iter().rev().take(Self::DEEPEST).position(|open| *open == name)
            {
                self.open.truncate(self.open.len() - 1 - at);
            }
        }
        let name = *self.open.last()?;
        let text = self.heap.text(name)?;
        Some(self.names.entry(name).or_insert_with(|| clip_to_cell(text).into()).clone())
            .filter(|name| !name.is_empty())
    }
}
