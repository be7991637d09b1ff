//! Looks up what dicts say.

use rustc_hash::FxHashMap;

use super::heap::Heap;
use super::value::Value;

/// The values of a dict that were asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<const N: usize> {
    /// The byte of the file at which the dict begins.
    pub(crate) byte: u64,
    /// In the order of the names; `None` if it has no such key.
    pub(crate) values: [Option<Value>; N],
}

/// Looks the same keys up in many dicts.
#[derive(Debug)]
pub(crate) struct Fields<const N: usize> {
    keys: [Value; N],
    /// The place of each key in a shape.
    places: FxHashMap<u32, [Option<u32>; N]>,
}

impl<const N: usize> Fields<N> {
    pub(crate) fn new(heap: &mut Heap, names: [&str; N]) -> Self {
        Self { keys: names.map(|name| heap.name_text(name)), places: FxHashMap::default() }
    }

    /// The entries of a dict; `None` if the value is no dict.
    pub(crate) fn read_record(&mut self, heap: &Heap, dict: Value) -> Option<Record<N>> {
        let (shape, start, byte) = heap.dict(dict)?;
        let keys = self.keys;
        let places =
            self.places.entry(shape).or_insert_with(|| keys.map(|key| heap.place_of_key(shape, key)));
        let values = places.map(|place| place.map(|place| heap.value_at(start, place)));
        Some(Record { byte, values })
    }

    /// The same for a dict that is read only once: a later call for it returns `None`.
    pub(crate) fn take_record(&mut self, heap: &mut Heap, dict: Value) -> Option<Record<N>> {
        let record = self.read_record(heap, dict)?;
        heap.take_dict(dict);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_counts() {
        let mut heap = Heap::new();
        let [x, y, z] = ["x", "y", "z"].map(|name| heap.name_text(name));
        let numbers: Vec<Value> = (0..4).map(|number| heap.whole_of(number).expect("room")).collect();
        let dict = heap.dict_of(5 << 32 | 7).expect("room");
        heap.set_entries(dict, &[x, numbers[0], y, numbers[1]]).expect("room");
        heap.set_entries(dict, &[x, numbers[2]]).expect("room");
        let other = heap.dict_of(9).expect("room");
        heap.set_entries(other, &[y, numbers[3]]).expect("room");
        let mut fields = Fields::new(&mut heap, ["x", "y", "z", "w"]);
        let record = fields.read_record(&heap, dict).expect("a dict");
        assert_eq!(record.values, [Some(numbers[2]), Some(numbers[1]), None, None]);
        assert_eq!(record.byte, 5 << 32 | 7);
        let record = fields.read_record(&heap, other).expect("a dict");
        assert_eq!(record.values, [None, Some(numbers[3]), None, None]);
        assert!(fields.read_record(&heap, z).is_none());
        assert!(heap.set_entries(dict, &[other, x]).is_err());
        assert!(fields.take_record(&mut heap, dict).is_some() && heap.is_taken(dict));
        assert!(fields.take_record(&mut heap, dict).is_none() && heap.set_entries(dict, &[x, y]).is_err());
    }
}
