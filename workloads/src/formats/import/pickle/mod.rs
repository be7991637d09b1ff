//! Reads pickles that hold data and nothing else: dict, list, tuple, str, int, float, bool, None.
//!
//! A pickle is a program for a stack machine, and the usual machine can call any function of Python. This one has no
//! way to call anything: it knows the opcodes that build those eight types, with shared references, and refuses every
//! other by name. Values lie in one [`Heap`] and refer to each other by number, so that nothing recurses, not even to
//! give the memory back, and a circle is only a list that has its own number.
//!
//! A stream is read once. Memory grows with what was read, never with a length that the file only claims, and at most a few
//! times as much. The entries of
//! long lists can be [watched](Watch): the watcher takes them as they come, and the heap does not keep them.
//!
//! # References
//!
//! 1. Python's `pickletools` (the opcodes and their arguments), <https://docs.python.org/3/library/pickletools.html>
//! 2. PEP 3154, Pickle protocol version 4, <https://peps.python.org/pep-3154/>

mod bytes;
mod compact;
mod fields;
mod heap;
mod machine;
mod memo;
mod opcode;
mod value;

pub(crate) use fields::{Fields, Record};
pub(crate) use heap::Heap;
pub(crate) use machine::{Watch, load_pickle};
pub(crate) use value::Value;
