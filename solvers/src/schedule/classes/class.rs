//! The fate of each feature map between the forward and the backward pass: kept, swapped or recomputed.

use std::fmt;

use planlab_graph::{MapId, Schedule, Task, TrainingNet};

/// The fate of a feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It stays on the device.
    Keep,
    /// It goes to the host and comes back.
    Swap,
    /// It is dropped, and computed again.
    Recompute,
}

impl Class {
    /// `keep`, `swap` or `recompute`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Swap => "swap",
            Self::Recompute => "recompute",
        }
    }

    /// `K`, `S` or `R`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Keep => 'K',
            Self::Swap => 'S',
            Self::Recompute => 'R',
        }
    }
}

planlab_dsa::named_enum! {
    /// The fate of a map that was recomputed on the way to another one.
    #[derive(Default)]
    pub enum Policy {
        /// It is dropped at once, and recomputed again for its own use.
        #[default]
        Discard = "discard",
        /// It stays until its own last use.
        Retain = "retain",
        /// It stays until its last use, and so does each map without a class on the way: no function runs again twice.
        Share = "share",
    }
}

/// A class for each map; it has no meaning for maps that no backward pass reads.
///
/// # Panics
///
/// All methods panic if the net has no such map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    by_map: Vec<Class>,
}

/// The number of maps in each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kept.
    pub keep: u32,
    /// Swapped.
    pub swap: u32,
    /// Recomputed.
    pub recompute: u32,
}

impl Classes {
    /// The same class for all `maps` maps of a net.
    #[must_use]
    pub fn all_in_class(class: Class, maps: usize) -> Self {
        Self { by_map: vec![class; maps] }
    }

    /// The classes of a net's maps in a schedule.
    #[must_use]
    pub fn from_schedule(net: &TrainingNet, schedule: &Schedule) -> Self {
        let mut classes = Self::all_in_class(Class::Keep, net.maps().len());
        for event in schedule.events.iter().flatten() {
            match event.task {
                Task::CopyOut(map) => classes.set_class(map, Class::Swap),
                Task::Recompute(id) => classes.set_class(net.function(id).output, Class::Recompute),
                _ => {}
            }
        }
        classes
    }

    /// The class of a map.
    #[must_use]
    pub fn class_of(&self, map: MapId) -> Class {
        self.by_map[map.index()]
    }

    /// Puts a map into a class.
    pub fn set_class(&mut self, map: MapId, class: Class) {
        self.by_map[map.index()] = class;
    }

    /// The same classes with one map in another class.
    #[must_use]
    pub fn with_class(&self, map: MapId, class: Class) -> Self {
        let mut classes = self.clone();
        classes.set_class(map, class);
        classes
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kept, {} swapped, {} recomputed", self.keep, self.swap, self.recompute)
    }
}
