//! What a heap of values is made of: a value is half a word, three bits of kind and a number, or an index.

use std::hash::{BuildHasher, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};

/// A value of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Constant,
    Whole,
    Wide,
    Huge,
    List,
    Tuple,
    Dict,
    Text,
}

const KIND_BITS: u32 = 3;
const KINDS: [Kind; 8] =
    [Kind::Constant, Kind::Whole, Kind::Wide, Kind::Huge, Kind::List, Kind::Tuple, Kind::Dict, Kind::Text];

impl Value {
    pub(crate) const NONE: Self = Self::from_kind(Kind::Constant, 0);
    pub(crate) const FALSE: Self = Self::from_kind(Kind::Constant, 1);
    pub(crate) const TRUE: Self = Self::from_kind(Kind::Constant, 2);
    /// A dict that was taken and is no longer there.
    pub(crate) const TAKEN: Self = Self::from_kind(Kind::Constant, 3);
    /// Any float: nobody asks for the number.
    pub(crate) const FLOAT: Self = Self::from_kind(Kind::Constant, 4);

    const fn from_kind(kind: Kind, payload: u32) -> Self {
        Self(payload << KIND_BITS | kind as u32)
    }

    /// The value with such an index, if there is room for it.
    pub(crate) fn from_index(kind: Kind, index: usize) -> Result<Self, &'static str> {
        let index = u32::try_from(index).ok().filter(|index| index >> (u32::BITS - KIND_BITS) == 0);
        index.map(|index| Self::from_kind(kind, index)).ok_or(FULL)
    }

    pub(crate) const fn kind(self) -> Kind {
        KINDS[(self.0 & 7) as usize]
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 >> KIND_BITS) as usize
    }

    /// A whole number that needs no place of its own, if it is such a one.
    pub(crate) fn of_whole(number: i128) -> Option<Self> {
        let narrow =
            i32::try_from(number).ok().filter(|&narrow| narrow << KIND_BITS >> KIND_BITS == narrow)?;
        Some(Self(narrow.cast_unsigned() << KIND_BITS | Kind::Whole as u32))
    }

    /// The number of a [whole one](Kind::Whole).
    pub(crate) const fn whole(self) -> i32 {
        self.0.cast_signed() >> KIND_BITS
    }

    pub(crate) fn is_list(self) -> bool {
        self.kind() == Kind::List
    }

    pub(crate) fn is_dict(self) -> bool {
        self.kind() == Kind::Dict
    }

    /// What Python calls its type.
    pub(crate) fn type_name(self) -> &'static str {
        match self.kind() {
            Kind::Constant if self == Self::NONE => "None",
            Kind::Constant if self == Self::TAKEN => "dict",
            Kind::Constant if self == Self::FLOAT => "float",
            Kind::Constant => "bool",
            Kind::Whole | Kind::Wide | Kind::Huge => "int",
            Kind::List => "list",
            Kind::Tuple => "tuple",
            Kind::Dict => "dict",
            Kind::Text => "str",
        }
    }
}

/// A part of the slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) length: u32,
    pub(crate) room: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dict {
    pub(crate) shape: u32,
    pub(crate) start: u32,
    pub(crate) room: u32,
    /// The byte of the file at which it begins, in two halves: the struct stays small.
    pub(crate) byte: [u32; 2],
}

/// What was there at the last compaction of a heap, and what changed since.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) old: Lengths,
    /// Old lists by the hash of their entries.
    pub(crate) known: FxHashMap<u64, (u32, u32)>,
    pub(crate) generation: u64,
    /// Whether something old has changed, and may lie among the young or refer to them.
    pub(crate) is_off: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    pub(crate) slab: usize,
    pub(crate) spans: usize,
    pub(crate) dicts: usize,
    pub(crate) wide: usize,
    pub(crate) huge: usize,
    pub(crate) memo: usize,
}

impl Survey {
    /// Notes that a list or a dict gets values, and may move.
    pub(crate) fn note_change(&mut self, container: Value) {
        let old = if container.is_dict() { self.old.dicts } else { self.old.spans };
        self.is_off |= container.index() < old;
    }

    /// Notes that a shape gets a key: one that is no text would have to move with the values.
    pub(crate) fn has_key(&mut self, key: Value) {
        self.is_off |= key.kind() != Kind::Text;
    }
}

/// The shape of a dict that was taken.
pub(crate) const TAKEN: u32 = u32::MAX;

/// Why a heap takes no more.
pub(crate) const FULL: &str = "it has more than 2^29 values of one kind, or 2^32 entries";

/// Bytes of the entries of a map, each with the byte that says whether it is there.
pub(crate) fn map_room<K, V>(map: &FxHashMap<K, V>) -> usize {
    map.len() * (size_of::<(K, V)>() + 1)
}

pub(crate) fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    FxBuildHasher.hash_one(of)
}
