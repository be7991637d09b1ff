//! Instances, plans and readings of pictures for tests.

pub(crate) use planlab_dsa::testing::{test_buffer as buffer, test_instance as instance};
use planlab_dsa::{Instance, Offset, Plan, VerifiedPlan};

use super::layout::Layout;

/// A size, the first step, and the step behind the last one.
pub(crate) type Life = (u64, u32, u32);

pub(crate) fn plan<'i>(instance: &'i Instance, offsets: &[u64]) -> VerifiedPlan<'i> {
    let offsets: Vec<Offset> = offsets.iter().copied().map(Offset::new).collect();
    instance.verify(Plan::from_offsets(offsets)).expect("valid")
}

pub(crate) fn layout(buffers: &[Life], offsets: &[u64]) -> Layout {
    let instance = instance(buffers);
    Layout::new(&instance, Some(&plan(&instance, offsets)))
}

/// Where the first text of a picture stands that begins like this.
pub(crate) fn place_of(svg: &str, text: &str) -> (f64, f64) {
    let before = svg.split(&format!(">{text}")).next().expect("is written");
    let element = before.rsplit("<text").next().expect("has an element");
    let number = |name: &str| {
        let value = element.split(&format!(" {name}=\"")).nth(1).expect("has a place");
        value.split('"').next().and_then(|number| number.parse().ok()).expect("is a number")
    };
    (number("x"), number("y"))
}
