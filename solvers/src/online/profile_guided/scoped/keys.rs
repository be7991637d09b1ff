//! Numbers the requests of operations: the same request of the same operation has one key in every propagation.

use rustc_hash::FxHashMap;

/// The number of a request of an operation; its data is looked up by this key.
pub(super) type Key = u32;

/// An operation, and the number of its requests in this propagation.
#[derive(Default)]
struct Operation {
    /// The keys of its first request, its second, ...
    keys: Vec<Key>,
    next: usize,
    /// The propagation that `next` belongs to.
    propagation: u64,
}

/// Gives keys to requests.
#[derive(Default)]
pub(super) struct Keys {
    operations: Vec<Operation>,
    by_name: FxHashMap<u64, usize>,
    /// The operation that runs; `None` before the first is named.
    current: Option<usize>,
    propagation: u64,
    len: Key,
}

impl Keys {
    /// Names the operation of the following requests.
    pub(super) fn enter_operation(&mut self, name: u64) {
        let new = self.operations.len();
        let index = *self.by_name.entry(name).or_insert(new);
        if index == new {
            self.operations.push(Operation::default());
        }
        let operation = &mut self.operations[index];
        if operation.propagation != self.propagation {
            (operation.propagation, operation.next) = (self.propagation, 0);
        }
        self.current = Some(index);
    }

    /// The key of the next request, which then counts as made.
    pub(super) fn take_key(&mut self) -> Key {
        if self.current.is_none() {
            self.enter_operation(0);
        }
        let operation = &mut self.operations[self.current.expect("one was entered")];
        let key = operation.keys.get(operation.next).copied().unwrap_or_else(|| {
            operation.keys.push(self.len);
            self.len += 1;
            self.len - 1
        });
        operation.next += 1;
        key
    }

    /// Takes back the last request, which was refused: it may be made again.
    pub(super) fn put_back(&mut self) {
        if let Some(current) = self.current {
            self.operations[current].next -= 1;
        }
    }

    pub(super) fn rewind_propagation(&mut self) {
        self.propagation += 1;
        self.current = None;
    }

    /// The number of keys; each key is below it.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_key_whenever_its_operation_runs() {
        let mut keys = Keys::default();
        let mut run = |operations: &[u64]| {
            keys.rewind_propagation();
            let of = |&operation: &u64| {
                keys.enter_operation(operation);
                keys.take_key()
            };
            operations.iter().map(of).collect::<Vec<Key>>()
        };
        assert_eq!(run(&[7, 7, 9, 7]), [0, 1, 2, 3]);
        assert_eq!(run(&[9, 7, 7, 7, 9]), [2, 0, 1, 3, 4]);
        keys.rewind_propagation();
        // Without a name, requests belong to operation 0.
        assert_eq!((keys.take_key(), keys.len()), (5, 6));
        keys.put_back();
        assert_eq!((keys.take_key(), keys.take_key(), keys.len()), (5, 6, 7));
    }
}
