//! Frees values that nothing refers to any more, while a pickle is read.
//!
//! What was there at the last time is *old* and stays where it is; what came since is *young*. Of the young, what the
//! stack and the memo reach moves down to the end of the old, and lists of equal entries share them. If an old list or
//! dict changes, nothing is freed from then on. Recordings do that only at their end.

use super::heap::Heap;
use super::memo::Memo;
use super::value::{Dict, Kind, Lengths, Span, Value, hash};

/// Young entries of the slab that make a compaction worthwhile. There are few in debug builds, so that the small files of
/// tests are compacted too.
const YOUNG: usize = if cfg!(debug_assertions) { 16 } else { 1 << 16 };

/// The old places of young values, and their new ones.
struct Move {
    old: Lengths,
    /// Where each young list, tuple, dict and number goes, if it is needed.
    spans: Vec<Option<u32>>,
    dicts: Vec<Option<u32>>,
    wide: Vec<Option<u32>>,
    huge: Vec<Option<u32>>,
    /// Young values to look into.
    left: Vec<Value>,
}

impl Heap {
    /// Compacts the heap if that is worthwhile. All references to values are in `stack`, `more` and the memo; they are
    /// updated.
    pub(crate) fn compact_if_worthwhile(
        &mut self,
        stack: &mut [Value],
        more: &mut [(Value, usize)],
        memo: &mut Memo,
    ) {
        let old = self.survey.old;
        if self.survey.is_off || self.slab.len() - old.slab < YOUNG + stack.len() {
            return;
        }
        let Some(young) = memo.values_since(old.memo) else {
            self.survey.is_off = true;
            return;
        };
        let mut step = Move {
            old,
            spans: vec![None; self.spans.len() - old.spans],
            dicts: vec![None; self.dicts.len() - old.dicts],
            wide: vec![None; self.wide.len() - old.wide],
            huge: vec![None; self.huge.len() - old.huge],
            left: Vec::new(),
        };
        let lists = more.iter().map(|(list, _)| list);
        for &root in stack.iter().chain(lists).chain(&*young) {
            step.mark_reached(self, root);
        }
        while let Some(value) = step.left.pop() {
            step.look_into(self, value);
        }
        step.number_reached();
        let tail = Tail::from_heap(self, &mut step);
        let lists = more.iter_mut().map(|(list, _)| list);
        tail.settle_values(self, &mut step, stack.iter_mut().chain(lists).chain(young));
        self.survey.old = Lengths {
            slab: self.slab.len(),
            spans: self.spans.len(),
            dicts: self.dicts.len(),
            wide: self.wide.len(),
            huge: self.huge.len(),
            memo: memo.values_since(0).map_or(0, |all| all.len()),
        };
        self.survey.generation += 1;
    }
}

impl Move {
    /// The place of a value that moves, if it is young.
    fn place_of(&mut self, value: Value) -> Option<&mut Option<u32>> {
        let (places, old) = match value.kind() {
            Kind::List | Kind::Tuple => (&mut self.spans, self.old.spans),
            Kind::Dict => (&mut self.dicts, self.old.dicts),
            Kind::Wide => (&mut self.wide, self.old.wide),
            Kind::Huge => (&mut self.huge, self.old.huge),
            Kind::Constant | Kind::Whole | Kind::Text => return None,
        };
        places.get_mut(value.index().checked_sub(old)?)
    }

    /// Notes that a value is needed.
    fn mark_reached(&mut self, heap: &Heap, value: Value) {
        if heap.is_taken(value) {
            return;
        }
        if let Some(place @ None) = self.place_of(value) {
            *place = Some(0);
            self.left.push(value);
        }
    }

    fn look_into(&mut self, heap: &Heap, value: Value) {
        let entries = match value.kind() {
            Kind::Dict => heap.dict_entries(heap.dicts[value.index()]),
            Kind::List | Kind::Tuple => entry_range(heap.spans[value.index()]),
            _ => return,
        };
        for &inner in &heap.slab[entries] {
            self.mark_reached(heap, inner);
        }
    }

    /// Numbers what is needed, in the order in which it came.
    fn number_reached(&mut self) {
        for (places, first) in [
            (&mut self.spans, self.old.spans),
            (&mut self.dicts, self.old.dicts),
            (&mut self.wide, self.old.wide),
            (&mut self.huge, self.old.huge),
        ] {
            let first = u32::try_from(first).expect("there are fewer than 2^29");
            for (place, number) in places.iter_mut().flatten().zip(first..) {
                *place = number;
            }
        }
    }

    /// What a value is from now on.
    fn moved_value(&mut self, heap: &Heap, value: Value) -> Value {
        if heap.is_taken(value) {
            return Value::TAKEN;
        }
        match self.place_of(value) {
            Some(&mut Some(to)) => {
                Value::from_index(value.kind(), to as usize).expect("no index becomes larger")
            }
            _ => value,
        }
    }

    /// Entries with their new numbers.
    fn moved_entries(&mut self, heap: &Heap, of: std::ops::Range<usize>, into: &mut Vec<Value>) {
        into.clear();
        into.extend(heap.slab[of].iter().map(|&value| self.moved_value(heap, value)));
    }
}

/// What comes behind the old values.
struct Tail {
    slab: Vec<Value>,
    spans: Vec<Span>,
    dicts: Vec<Dict>,
}

impl Tail {
    fn from_heap(heap: &mut Heap, step: &mut Move) -> Self {
        let mut tail = Self { slab: Vec::new(), spans: Vec::new(), dicts: Vec::new() };
        let mut moved = Vec::new();
        for young in 0..step.spans.len() {
            if step.spans[young].is_some() {
                let span = heap.spans[step.old.spans + young];
                step.moved_entries(heap, entry_range(span), &mut moved);
                let start = tail.share_entries(heap, step.old, &moved);
                tail.spans.push(Span { start, room: span.length, ..span });
            }
        }
        for young in 0..step.dicts.len() {
            if step.dicts[young].is_some() {
                let dict = heap.dicts[step.old.dicts + young];
                step.moved_entries(heap, heap.dict_entries(dict), &mut moved);
                let start = tail.push_entries(step.old, &moved);
                let room = u32::try_from(moved.len()).expect("no longer than before");
                tail.dicts.push(Dict { start, room, ..dict });
            }
        }
        tail
    }

    /// Where entries lie that are equal to these: there already, or here from now on.
    fn share_entries(&mut self, heap: &mut Heap, old: Lengths, entries: &[Value]) -> u32 {
        let hash = hash(entries);
        if let Some(&(start, length)) = heap.survey.known.get(&hash) {
            let (from, to) = (start as usize, (start + length) as usize);
            let known = match from.checked_sub(old.slab) {
                Some(from) => &self.slab[from..to - old.slab],
                None => &heap.slab[from..to],
            };
            if known == entries {
                return start;
            }
        }
        let start = self.push_entries(old, entries);
        let length = u32::try_from(entries.len()).expect("no longer than before");
        heap.survey.known.insert(hash, (start, length));
        start
    }

    fn push_entries(&mut self, old: Lengths, entries: &[Value]) -> u32 {
        let start = old.slab + self.slab.len();
        self.slab.extend_from_slice(entries);
        u32::try_from(start).expect("the slab becomes no longer")
    }

    /// Puts it behind the old values, and gives all that refer to them the new numbers.
    fn settle_values<'v>(self, heap: &mut Heap, step: &mut Move, roots: impl Iterator<Item = &'v mut Value>) {
        for root in roots {
            *root = step.moved_value(heap, *root);
        }
        let old = step.old;
        replace_tail(&mut heap.slab, old.slab, self.slab);
        replace_tail(&mut heap.spans, old.spans, self.spans);
        replace_tail(&mut heap.dicts, old.dicts, self.dicts);
        keep_needed(&mut heap.wide, old.wide, &step.wide);
        keep_needed(&mut heap.huge, old.huge, &step.huge);
    }
}

const fn entry_range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..(span.start + span.length) as usize
}

/// Of the young numbers, keeps those that have a place.
fn keep_needed<T: Copy>(all: &mut Vec<T>, old: usize, places: &[Option<u32>]) {
    let young = all[old..].iter().zip(places);
    let needed = young.filter_map(|(&number, place)| place.map(|_| number)).collect();
    replace_tail(all, old, needed);
}

fn replace_tail<T>(all: &mut Vec<T>, from: usize, by: Vec<T>) {
    all.truncate(from);
    all.extend(by);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list `[number, number, ...]`.
    fn list(heap: &mut Heap, numbers: &[i128]) -> Value {
        let values: Vec<Value> = numbers.iter().map(|&number| heap.whole_of(number).expect("room")).collect();
        let list = heap.list_of().expect("room");
        heap.append_items(list, &values).expect("room");
        list
    }

    fn numbers(heap: &Heap, list: Value) -> Vec<i128> {
        heap.items(list).expect("a list").iter().map(|&item| heap.integer(item).expect("a number")).collect()
    }

    #[test]
    fn what_is_needed_moves_and_the_rest_is_forgotten() {
        let (mut heap, mut memo) = (Heap::new(), Memo::default());
        let key = heap.name_text("key");
        let far = [1 << 40, i128::MAX, 5];
        let mut stack = Vec::new();
        for round in 0..100_u64 {
            let frames = list(&mut heap, &[5, 6, 7]);
            let event = heap.dict_of(round).expect("room");
            let time = heap.whole_of(1 << 50 | i128::from(round)).expect("room");
            heap.set_entries(event, &[key, frames, key, time]).expect("room");
            let kept = heap.dict_of(1000 + round).expect("room");
            heap.set_entries(kept, &[key, frames]).expect("room");
            [frames, event, kept].into_iter().for_each(|value| memo.put(memo.count(), value));
            heap.take_dict(event);
            if round == 0 {
                stack.push(list(&mut heap, &far));
            }
            heap.compact_if_worthwhile(&mut stack, &mut [], &mut memo);
        }
        assert!(heap.generation() > 1);
        assert_eq!(numbers(&heap, stack[0]), far);
        for round in 0..100 {
            let [frames, event, kept] = [0, 1, 2].map(|at| memo.get(3 * round + at).expect("there"));
            assert_eq!(numbers(&heap, frames), [5, 6, 7]);
            assert!(heap.is_taken(event));
            assert_eq!((heap.byte_of(kept), heap.value_of(kept, key)), (Some(1000 + round), Some(frames)));
        }
        // Equal lists share their entries.
        assert!(heap.slab.len() < 100 + 4 * YOUNG && heap.wide.len() + heap.huge.len() < 40);
    }

    #[test]
    fn circles_are_moved_whole() {
        let (mut heap, mut memo) = (Heap::new(), Memo::default());
        let mut stack = Vec::new();
        for _ in 0..10 {
            list(&mut heap, &[1; 2 * YOUNG]);
            let [one, two] = [(); 2].map(|()| heap.list_of().expect("room"));
            heap.append_items(one, &[two, two]).expect("room");
            heap.append_items(two, &[one]).expect("room");
            stack.push(one);
            heap.compact_if_worthwhile(&mut stack, &mut [], &mut memo);
        }
        assert_eq!((heap.generation(), heap.spans.len()), (10, 20));
        for &one in &stack {
            let [two, again] = *heap.items(one).expect("a list") else { panic!("two entries") };
            assert_eq!((two, heap.items(two)), (again, Some(&[one][..])));
        }
    }

    #[test]
    fn where_something_old_changes_nothing_moves_any_more() {
        let (mut heap, mut memo) = (Heap::new(), Memo::default());
        let mut stack = vec![list(&mut heap, &[7; 2 * YOUNG])];
        heap.compact_if_worthwhile(&mut stack, &mut [], &mut memo);
        let young = list(&mut heap, &[8; 4 * YOUNG]);
        heap.append_items(stack[0], &[young]).expect("room");
        heap.compact_if_worthwhile(&mut stack, &mut [], &mut memo);
        let last = heap.items(stack[0]).and_then(|items| items.last().copied());
        assert_eq!((heap.generation(), last), (1, Some(young)));
        assert_eq!(numbers(&heap, young), [8; 4 * YOUNG]);
    }
}
