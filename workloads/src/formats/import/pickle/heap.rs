//! The values of a pickle, packed.
//!
//! The entries of lists, tuples and dicts lie in one slab. A dict has a shape, the sequence of its keys, and only its
//! values in the slab, since the dicts of a recording have all the same keys. Short texts that are equal are one.
//!
//! Dicts that were read and are needed no more are [taken](Heap::take_dict); their room comes back by `compact`.

use rustc_hash::FxHashMap;

use super::value::{Dict, FULL, Kind, Span, Survey, TAKEN, Value, hash, map_room};

/// A sequence of keys: another one and a key more. A key may be there twice; the last counts.
#[derive(Clone, Copy, Debug)]
struct Shape {
    before: u32,
    key: Value,
    length: u32,
}

/// Longer texts are not compared with others.
const SHORT: usize = 256;

/// All values of a pickle.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) slab: Vec<Value>,
    pub(crate) spans: Vec<Span>,
    pub(crate) dicts: Vec<Dict>,
    shapes: Vec<Shape>,
    next_shape: FxHashMap<(u32, Value), u32>,
    text: String,
    /// Bytes of the text that is being read.
    incoming: Vec<u8>,
    /// Bytes that were looked through for UTF-8.
    #[cfg(test)]
    pub(crate) looked_through: usize,
    /// Where each text ends.
    ends: Vec<usize>,
    /// The first text of each hash.
    known: FxHashMap<u64, u32>,
    /// Whole numbers of up to 64 bits, and longer ones.
    pub(crate) wide: Vec<i64>,
    pub(crate) huge: Vec<i128>,
    pub(crate) survey: Survey,
}

impl Heap {
    pub(crate) fn new() -> Self {
        let empty = Shape { before: 0, key: Value::NONE, length: 0 };
        Self { shapes: vec![empty], ..Self::default() }
    }

    pub(crate) fn whole_of(&mut self, number: i128) -> Result<Value, &'static str> {
        if let Some(narrow) = Value::of_whole(number) {
            return Ok(narrow);
        }
        match i64::try_from(number) {
            Ok(wide) => {
                self.wide.push(wide);
                Value::from_index(Kind::Wide, self.wide.len() - 1)
            }
            Err(_) => {
                self.huge.push(number);
                Value::from_index(Kind::Huge, self.huge.len() - 1)
            }
        }
    }

    /// The buffer that takes the bytes of a text before [`Self::text_of`].
    pub(crate) fn text_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.incoming
    }

    /// The text of what was put into the buffer.
    pub(crate) fn text_of(&mut self) -> Result<Value, String> {
        let incoming = std::mem::take(&mut self.incoming);
        #[cfg(test)]
        {
            self.looked_through += incoming.len();
        }
        let new = std::str::from_utf8(&incoming)
            .map_err(|error| format!("byte {} of the text is not UTF-8", error.valid_up_to()))?;
        let value = self.intern_text(new)?;
        // The room of a long text is not kept for the short ones that follow.
        if incoming.len() <= SHORT {
            self.incoming = incoming;
            self.incoming.clear();
        }
        Ok(value)
    }

    /// The value of a text: a known one if it is short and was read before, or a new one.
    fn intern_text(&mut self, new: &str) -> Result<Value, &'static str> {
        if new.len() <= SHORT {
            let hash = hash(new.as_bytes());
            match self.known.get(&hash) {
                Some(&at) if self.text_at(at as usize) == new => {
                    return Value::from_index(Kind::Text, at as usize);
                }
                Some(_) => {}
                None => {
                    // Past 2^32 texts they are no longer compared.
                    if let Ok(at) = u32::try_from(self.ends.len()) {
                        self.known.insert(hash, at);
                    }
                }
            }
        }
        self.text.push_str(new);
        self.ends.push(self.text.len());
        Value::from_index(Kind::Text, self.ends.len() - 1)
    }

    fn text_at(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    pub(crate) fn list_of(&mut self) -> Result<Value, &'static str> {
        self.spans.push(Span { start: 0, length: 0, room: 0 });
        Value::from_index(Kind::List, self.spans.len() - 1)
    }

    pub(crate) fn tuple_of(&mut self, items: &[Value]) -> Result<Value, &'static str> {
        let mut span = Span { start: 0, length: 0, room: 0 };
        self.extend_span(&mut span, items)?;
        self.spans.push(span);
        Value::from_index(Kind::Tuple, self.spans.len() - 1)
    }

    pub(crate) fn dict_of(&mut self, byte: u64) -> Result<Value, &'static str> {
        #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
        let byte = [(byte >> 32) as u32, byte as u32];
        self.dicts.push(Dict { shape: 0, start: 0, room: 0, byte });
        Value::from_index(Kind::Dict, self.dicts.len() - 1)
    }

    /// Appends to a list.
    pub(crate) fn append_items(&mut self, list: Value, items: &[Value]) -> Result<(), &'static str> {
        let index = list.index();
        self.survey.note_change(list);
        let mut span = self.spans[index];
        self.extend_span(&mut span, items)?;
        self.spans[index] = span;
        Ok(())
    }

    /// Sets entries of a dict: key, value, key, value.
    pub(crate) fn set_entries(&mut self, dict: Value, pairs: &[Value]) -> Result<(), &'static str> {
        let index = dict.index();
        let Dict { mut shape, start, room, byte } = self.dicts[index];
        if shape == TAKEN {
            return Err("a dict changes after it was complete");
        }
        self.survey.note_change(dict);
        let mut span = Span { start, length: self.shapes[shape as usize].length, room };
        let (pairs, []) = pairs.as_chunks::<2>() else { return Err("a key has no value") };
        self.reserve_span(&mut span, pairs.len())?;
        for &[key, value] in pairs {
            if matches!(key.kind(), Kind::List | Kind::Dict) {
                return Err("a list or a dict is a key");
            }
            shape = self.shape_with(shape, key)?;
            self.push_value(&mut span, value);
        }
        self.dicts[index] = Dict { shape, start: span.start, room: span.room, byte };
        Ok(())
    }

    fn shape_with(&mut self, before: u32, key: Value) -> Result<u32, &'static str> {
        if let Some(&known) = self.next_shape.get(&(before, key)) {
            return Ok(known);
        }
        let new = u32::try_from(self.shapes.len()).ok().filter(|&new| new < TAKEN).ok_or(FULL)?;
        self.survey.has_key(key);
        let length = self.shapes[before as usize].length + 1;
        self.shapes.push(Shape { before, key, length });
        self.next_shape.insert((before, key), new);
        Ok(new)
    }

    fn extend_span(&mut self, span: &mut Span, items: &[Value]) -> Result<(), &'static str> {
        self.reserve_span(span, items.len())?;
        items.iter().for_each(|&item| self.push_value(span, item));
        Ok(())
    }

    /// Makes room for more entries: at the end of the slab, where the span lies there already or moves to.
    fn reserve_span(&mut self, span: &mut Span, more: usize) -> Result<(), &'static str> {
        let full = |_| FULL;
        let needed = u32::try_from(span.length as usize + more).map_err(full)?;
        if needed <= span.room {
            return Ok(());
        }
        let is_last = span.room > 0 && (span.start + span.room) as usize == self.slab.len();
        // The first entries have just the room that they need; a span that grows has twice as much each time.
        let room = if span.room == 0 { needed } else { needed.max(span.room.saturating_mul(2)) };
        if !is_last {
            let start = u32::try_from(self.slab.len()).map_err(full)?;
            let old = span.start as usize..(span.start + span.length) as usize;
            self.slab.extend_from_within(old);
            span.start = start;
        }
        let end = span.start.checked_add(room).ok_or(FULL)?;
        self.slab.resize(end as usize, Value::NONE);
        span.room = room;
        Ok(())
    }

    fn push_value(&mut self, span: &mut Span, value: Value) {
        self.slab[(span.start + span.length) as usize] = value;
        span.length += 1;
    }

    /// The entries of a list or a tuple.
    pub(crate) fn items(&self, value: Value) -> Option<&[Value]> {
        matches!(value.kind(), Kind::List | Kind::Tuple).then(|| {
            let span = self.spans[value.index()];
            &self.slab[span.start as usize..(span.start + span.length) as usize]
        })
    }

    /// A text, which costs the same however long it is.
    pub(crate) fn text(&self, value: Value) -> Option<&str> {
        (value.kind() == Kind::Text).then(|| self.text_at(value.index()))
    }

    /// A whole number; True and False are 1 and 0 in Python.
    pub(crate) fn integer(&self, value: Value) -> Option<i128> {
        match value.kind() {
            Kind::Whole => Some(i128::from(value.whole())),
            Kind::Wide => Some(i128::from(self.wide[value.index()])),
            Kind::Huge => Some(self.huge[value.index()]),
            _ if matches!(value, Value::TRUE | Value::FALSE) => Some(i128::from(value == Value::TRUE)),
            _ => None,
        }
    }

    /// A whole number from 0 to 2^64 - 1.
    pub(crate) fn whole(&self, value: Value) -> Option<u64> {
        u64::try_from(self.integer(value)?).ok()
    }

    /// The shape of a dict, where its values begin, and the byte of the file at which it does.
    pub(crate) fn dict(&self, value: Value) -> Option<(u32, u32, u64)> {
        let Dict { shape, start, .. } =
            *value.is_dict().then(|| &self.dicts[value.index()]).filter(|dict| dict.shape != TAKEN)?;
        Some((shape, start, self.byte_of(value)?))
    }

    /// The byte of the file at which a dict begins.
    pub(crate) fn byte_of(&self, dict: Value) -> Option<u64> {
        let [high, low] = dict.is_dict().then(|| self.dicts[dict.index()].byte)?;
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// Bytes of its values, without the room that its vectors have to spare.
    pub(crate) fn room_bytes(&self) -> usize {
        size_of_val(&*self.slab)
            + size_of_val(&*self.spans)
            + size_of_val(&*self.dicts)
            + size_of_val(&*self.shapes)
            + map_room(&self.next_shape)
            + self.text.len()
            + size_of_val(&*self.ends)
            + map_room(&self.known)
            + size_of_val(&*self.wide)
            + size_of_val(&*self.huge)
            + map_room(&self.survey.known)
    }

    /// Takes a dict out: later references to it find nothing.
    pub(crate) fn take_dict(&mut self, dict: Value) {
        if dict.is_dict() {
            self.dicts[dict.index()].shape = TAKEN;
        }
    }

    /// Whether a value is a dict that was taken.
    pub(crate) fn is_taken(&self, value: Value) -> bool {
        value == Value::TAKEN || value.is_dict() && self.dicts[value.index()].shape == TAKEN
    }

    /// Changes whenever values get other numbers: what was kept by value is then void.
    pub(crate) const fn generation(&self) -> u64 {
        self.survey.generation
    }

    /// The entries that a dict has in the slab.
    pub(crate) fn dict_entries(&self, dict: Dict) -> std::ops::Range<usize> {
        let length = self.shapes.get(dict.shape as usize).map_or(0, |shape| shape.length);
        dict.start as usize..(dict.start + length) as usize
    }

    /// What a dict has for a key.
    pub(crate) fn value_of(&self, dict: Value, key: Value) -> Option<Value> {
        let (shape, start, _) = self.dict(dict)?;
        self.place_of_key(shape, key).map(|place| self.value_at(start, place))
    }

    /// The value at a place behind the beginning of a dict.
    pub(crate) fn value_at(&self, start: u32, place: u32) -> Value {
        self.slab[(start + place) as usize]
    }

    /// The last place of a key in a shape.
    pub(crate) fn place_of_key(&self, shape: u32, key: Value) -> Option<u32> {
        let of = |shape: u32| self.shapes[shape as usize];
        let all = std::iter::successors(Some(of(shape)), |shape| Some(of(shape.before)));
        let mut keys = all.take_while(|shape| shape.length > 0);
        keys.find(|shape| shape.key == key).map(|shape| shape.length - 1)
    }

    /// The text value that texts equal to this short one are, those before and those to come.
    pub(crate) fn name_text(&mut self, text: &str) -> Value {
        self.find_text(text).unwrap_or_else(|| {
            // A heap that is full has no text that is equal to it.
            self.intern_text(text).unwrap_or(Value::NONE)
        })
    }

    /// The text value that is equal to this one, if any value is.
    pub(crate) fn find_text(&self, text: &str) -> Option<Value> {
        let at = *self.known.get(&hash(text.as_bytes()))? as usize;
        Value::from_index(Kind::Text, at).ok().filter(|_| self.text_at(at) == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(heap: &mut Heap, text: &str) -> Value {
        heap.text_buffer().extend(text.as_bytes());
        heap.text_of().expect("UTF-8")
    }

    #[test]
    fn numbers_come_back() {
        let mut heap = Heap::new();
        let (edge, far) = (1_i128 << 28, 1_i128 << 63);
        let edges = [edge - 1, edge, -edge, -edge - 1, far - 1, far, -far, -far - 1];
        for number in [0, 1, -1, i128::MIN, i128::MAX].into_iter().chain(edges) {
            let value = heap.whole_of(number).expect("room");
            assert_eq!(value.type_name(), "int");
            assert_eq!(heap.integer(value), Some(number));
        }
        assert_eq!(heap.integer(Value::TRUE), Some(1));
        assert_eq!([Value::NONE, Value::FLOAT].map(|value| heap.integer(value)), [None, None]);
    }

    #[test]
    fn equal_short_texts_are_one() {
        let mut heap = Heap::new();
        let (a, b, c) = (text(&mut heap, "a"), text(&mut heap, ""), text(&mut heap, "a"));
        assert_eq!((a, heap.text(a), heap.text(b)), (c, Some("a"), Some("")));
        let long = "x".repeat(SHORT + 1);
        let (d, e) = (text(&mut heap, &long), text(&mut heap, &long));
        assert_ne!(d, e);
        assert_eq!(heap.text(e), Some(long.as_str()));
        heap.text_buffer().extend([b'a', 0xFF]);
        assert_eq!(heap.text_of(), Err("byte 1 of the text is not UTF-8".to_owned()));
    }

    #[test]
    fn lists_grow_while_others_do() {
        let mut heap = Heap::new();
        let lists = [heap.list_of().expect("room"), heap.list_of().expect("room")];
        for number in 0..1000_i128 {
            let value = heap.whole_of(number).expect("room");
            for list in lists {
                heap.append_items(list, &[value]).expect("room");
            }
        }
        for list in lists {
            let items = heap.items(list).expect("a list").iter();
            assert!(items.map(|&item| heap.integer(item)).eq((0..1000).map(Some)));
        }
        assert!(heap.slab.len() < 8000, "{}", heap.slab.len());
    }
}
