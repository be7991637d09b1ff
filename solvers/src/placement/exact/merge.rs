//! Buffers that hand their whole place over, as one buffer.

use planlab_dsa::{Buffer, BufferId, InPlace, Instance, LiveRange, Plan};

/// The buffer, in use as a whole whenever a part of it is.
fn without_windows(buffer: &Buffer) -> Buffer {
    let pauses: Vec<_> = buffer.pauses.iter().filter(|pause| pause.window.is_none()).cloned().collect();
    Buffer { pauses: pauses.into(), ..buffer.clone() }
}

/// An instance in which buffers that hand over their whole place are merged.
pub(super) struct Merge {
    pub(super) instance: Instance,
    /// The merged buffer that contains each buffer.
    part_of: Vec<usize>,
    pairs: Vec<InPlace>,
}

impl Merge {
    /// `None` if the merged buffers are not a valid instance: only a hand-over would allow their pins.
    pub(super) fn new(instance: &Instance, pairs: Vec<InPlace>) -> Option<Self> {
        let mut giver = vec![None; instance.len()];
        pairs.iter().for_each(|pair| giver[pair.output.index()] = Some(pair.input.index()));
        let mut by_start: Vec<usize> = (0..instance.len()).collect();
        by_start.sort_by_key(|&at| (instance.buffers()[at].live.start(), at));
        let mut part_of = vec![0; instance.len()];
        let mut buffers: Vec<Buffer> = Vec::new();
        for at in by_start {
            let buffer = &instance.buffers()[at];
            part_of[at] = giver[at].map_or(buffers.len(), |giver: usize| part_of[giver]);
            match buffers.get_mut(part_of[at]) {
                Some(merged) => {
                    let (start, end) =
                        (merged.live.start().get(), buffer.live.end().max(merged.live.end()).get());
                    merged.live = LiveRange::new(start, end).ok()?;
                }
                None => buffers.push(without_windows(buffer)),
            }
        }
        let number = |id: BufferId| BufferId::from_index(part_of[id.index()]);
        let apart = instance
            .keep_apart_pairs()
            .iter()
            .map(|pair| planlab_dsa::KeepApart { first: number(pair.first), second: number(pair.second) });
        let merged = Instance::builder().buffers(buffers).apart(apart).build().ok()?;
        Some(Self { instance: merged, part_of, pairs })
    }

    /// The plan of the original instance that corresponds to one of the merged instance.
    pub(super) fn original_plan(&self, plan: &Plan) -> Plan {
        let offsets: Vec<_> = self.part_of.iter().map(|&part| plan.offsets[part]).collect();
        Plan { offsets, in_place: self.pairs.clone() }
    }
}
