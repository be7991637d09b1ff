//! The steps of a file, where an instance has their ranks.

use std::collections::BTreeMap;

use planlab_dsa::{Instance, Labels, Step};

/// Says when something happens as the file of the trace says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// The step of the file for each rank at which a buffer begins or ends.
    original: BTreeMap<u32, u64>,
}

impl Clock {
    pub(crate) fn from_labels(instance: &Instance, labels: &Labels) -> Self {
        let mut original = BTreeMap::new();
        for (buffer, label) in instance.buffers().iter().zip(&labels.buffers) {
            if let Some((lower, upper)) = label.original_steps {
                original.insert(buffer.live.start().get(), lower);
                original.insert(buffer.live.end().get(), upper);
            }
        }
        Self { original }
    }

    /// The step of the file at which a step of the instance begins; at a step without a change, that of the last change
    /// before. Steps that were not ranked are the file's own.
    pub(crate) fn original_step(&self, step: Step) -> u64 {
        let last = self.original.range(..=step.get()).next_back();
        last.map_or(u64::from(step.get()), |(_, &original)| original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples;

    #[test]
    fn ranks_are_steps_of_the_file_again() {
        let instance = samples::instance(&[(8, 0, 2), (8, 1, 3)]);
        let mut labels = Labels::from_numbers(2);
        let at = |labels: &Labels| {
            (0..4)
                .map(|step| Clock::from_labels(&instance, labels).original_step(Step::new(step)))
                .collect::<Vec<_>>()
        };
        assert_eq!(at(&labels), [0, 1, 2, 3]);
        labels.buffers[0].original_steps = Some((100, 7_000));
        labels.buffers[1].original_steps = Some((900, 90_000));
        assert_eq!(at(&labels), [100, 900, 7_000, 90_000]);
        labels.buffers[1].original_steps = None;
        assert_eq!(at(&labels), [100, 100, 7_000, 7_000]);
    }
}
