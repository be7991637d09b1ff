//! A family of instances, and what it makes.

use planlab_dsa::{Buffer, Bytes, Instance, Labels, LiveRange, Offset};

use super::parameters::{Parameter, ParameterError, Values};

/// A family of instances.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name in keys.
    pub name: &'static str,
    /// What it models, in one line.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(super) make: fn(&Values) -> Result<Made, ParameterError>,
}

/// An instance with the facts that its construction provides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Made {
    /// The problem.
    pub instance: Instance,
    /// Names and categories, if the family has them.
    pub labels: Option<Labels>,
    /// The optimal height, if the construction determines it.
    pub optimum: Option<Bytes>,
    /// Offsets of a plan of that height.
    pub witness: Option<Vec<Offset>>,
}

impl Made {
    pub(super) fn from_buffers(buffers: Vec<Buffer>) -> Result<Self, ParameterError> {
        let instance = Instance::from_buffers(buffers)?;
        Ok(Self { instance, labels: None, optimum: None, witness: None })
    }

    /// Buffers with the offsets of a plan that is known to be optimal.
    pub(super) fn from_placed(placed: Vec<(Buffer, u64)>, optimum: u64) -> Result<Self, ParameterError> {
        let witness = placed.iter().map(|&(_, offset)| Offset::new(offset)).collect();
        let made = Self::from_buffers(placed.into_iter().map(|(buffer, _)| buffer).collect())?;
        Ok(Self { optimum: Some(Bytes::new(optimum)), witness: Some(witness), ..made })
    }
}

/// A life; `start < end` by construction of the families.
pub(super) fn life(start: u32, end: u32) -> LiveRange {
    LiveRange::new(start, end).expect("families make no empty lives")
}
