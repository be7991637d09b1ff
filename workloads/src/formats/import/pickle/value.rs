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
    Float,
    List,
    Tuple,
    Dict,
    Text,
}

const KIND_BITS: u32 = 3;
/// None, False, True, and what was taken.
const CONSTANTS: usize = 4;
const KINDS: [Kind; 8] =
    [Kind::Constant, Kind::Whole, Kind::Wide, Kind::Float, Kind::List, Kind::Tuple, Kind::Dict, Kind::Text];

impl Value {
    pub(crate) const NONE: Self = Self::from_kind(Kind::Constant, 0);
    pub(crate) const FALSE: Self = Self::from_kind(Kind::Constant, 1);
    pub(crate) const TRUE: Self = Self::from_kind(Kind::Constant, 2);
    /// A dict that was taken and is no longer there.
    pub(crate) const TAKEN: Self = Self::from_kind(Kind::Constant, 3);

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

    /// The index of a number that fits no 64 bits: such numbers are rare, and come behind the constants.
    pub(crate) fn huge_index(self) -> Option<usize> {
        (self.kind() == Kind::Constant).then(|| self.index().checked_sub(CONSTANTS)).flatten()
    }

    /// A number that fits no 64 bits, by its index.
    pub(crate) fn of_huge(index: usize) -> Result<Self, &'static str> {
        Self::from_index(Kind::Constant, CONSTANTS + index)
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
            Kind::Constant if self.huge_index().is_some() => "int",
            Kind::Constant => "bool",
            Kind::Whole | Kind::Wide => "int",
            Kind::Float => "float",
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
