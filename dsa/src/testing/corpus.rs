//! Small instances with known optima, from `dsa/testdata`; made by the example `make_testdata`.

use serde::{Deserialize, Serialize};

use super::samples::test_buffer;
use crate::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, InPlace, Instance, KeepApart, LiveRange, Offset,
    Pause,
};

/// An instance of the corpus with its known optimum.
#[derive(Clone, Debug)]
pub struct Case {
    /// The unique name.
    pub name: String,
    /// The problem. A valid plan exists.
    pub instance: Instance,
    /// The least height of any plan, if known.
    pub optimum: Option<Bytes>,
    /// The least height of a plan without hand-overs, if known; equal to `optimum` without permissions.
    pub without_hand_over: Option<Bytes>,
    /// The purpose of the case, and how the optimum is known.
    pub why: String,
}

const FILES: [&str; 7] = [
    include_str!("../../testdata/shapes.json"),
    include_str!("../../testdata/above-load.json"),
    include_str!("../../testdata/adversaries.json"),
    include_str!("../../testdata/guillotine-10.json"),
    include_str!("../../testdata/guillotine-100.json"),
    include_str!("../../testdata/guillotine-1000.json"),
    include_str!("../../testdata/guillotine-10000.json"),
];

/// All cases.
#[must_use]
pub fn corpus() -> Vec<Case> {
    let read = |text: &str| serde_json::from_str::<CaseFile>(text).expect("the corpus is well formed");
    FILES.iter().flat_map(|text| read(text).cases).map(FileCase::into_case).collect()
}

/// The contents of a corpus file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// The command that made the file.
    pub command: String,
    /// Its cases.
    pub cases: Vec<FileCase>,
}

/// A pause as a file holds it: buffer, first step, the step after the last, and window.
pub type PauseRow = (u32, u32, u32, Option<(u64, u64)>);

/// A case as stored in a file: a row of numbers for each buffer, and lists for all other features.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCase {
    /// As in [`Case`].
    pub name: String,
    /// As in [`Case`].
    pub why: String,
    /// As in [`Case`].
    pub optimum: Option<u64>,
    /// As in [`Case`]; absent if equal to the optimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_hand_over: Option<u64>,
    /// Size, first step, and the step after the last of each buffer.
    pub buffers: Vec<(u64, u32, u32)>,
    /// Buffer and alignment, if not 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub align: Vec<(u32, u64)>,
    /// Buffer and offset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<(u32, u64)>,
    /// All pauses, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<PauseRow>,
    /// Buffer and arena, if not the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arena_of: Vec<(u32, u16)>,
    /// The capacity of each arena; if empty, one arena without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Option<u64>>,
    /// Input and output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_place: Vec<(u32, u32)>,
    /// Pairs to keep apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<(u32, u32)>,
}

impl FileCase {
    /// The case for an instance.
    #[must_use]
    pub fn from_instance(name: &str, why: &str, instance: &Instance) -> Self {
        let rows = || instance.buffers().iter().zip(0_u32..);
        let is_default = matches!(instance.arenas(), [arena] if arena.capacity.is_none());
        let capacities = instance.arenas().iter().map(|arena| arena.capacity.map(Bytes::get));
        let steps = |live: LiveRange| (live.start().get(), live.end().get());
        let pauses = rows().flat_map(|(b, id)| b.pauses.iter().map(move |pause| (id, pause)));
        Self {
            name: name.to_owned(),
            why: why.to_owned(),
            optimum: None,
            without_hand_over: None,
            buffers: rows().map(|(b, _)| (b.size.get(), steps(b.live).0, steps(b.live).1)).collect(),
            align: rows().filter(|(b, _)| b.align.get() > 1).map(|(b, id)| (id, b.align.get())).collect(),
            pins: rows().filter_map(|(b, id)| Some((id, b.pin?.get()))).collect(),
            pauses: pauses
                .map(|(id, pause)| {
                    let window = pause.window.as_ref().map(|w| (w.start.get(), w.end.get()));
                    (id, steps(pause.steps).0, steps(pause.steps).1, window)
                })
                .collect(),
            arena_of: rows().filter(|(b, _)| b.arena.get() > 0).map(|(b, id)| (id, b.arena.get())).collect(),
            capacities: if is_default { Vec::new() } else { capacities.collect() },
            in_place: instance.in_place().iter().map(|p| (p.input.get(), p.output.get())).collect(),
            apart: instance.keep_apart_pairs().iter().map(|p| (p.first.get(), p.second.get())).collect(),
        }
    }

    /// Sets the known optimum, and the optimum without hand-overs if different.
    #[must_use]
    pub fn with_optimum(mut self, optimum: u64, without_hand_over: u64) -> Self {
        self.optimum = Some(optimum);
        self.without_hand_over = (optimum != without_hand_over).then_some(without_hand_over);
        self
    }

    /// Converts the file's rows to a case.
    ///
    /// # Panics
    ///
    /// If the rows do not form a valid instance.
    #[must_use]
    pub fn into_case(self) -> Case {
        let instance = self.build_instance();
        let optimum = self.optimum.map(Bytes::new);
        let without_hand_over = self.without_hand_over.map(Bytes::new).or(optimum);
        Case { name: self.name, instance, optimum, without_hand_over, why: self.why }
    }

    fn build_instance(&self) -> Instance {
        let mut buffers: Vec<Buffer> =
            self.buffers.iter().map(|&(size, start, end)| test_buffer(size, start, end)).collect();
        for &(id, align) in &self.align {
            buffers[id as usize].align = Alignment::new(align).expect("alignments are positive");
        }
        for &(id, pin) in &self.pins {
            buffers[id as usize].pin = Some(Offset::new(pin));
        }
        for &(id, arena) in &self.arena_of {
            buffers[id as usize].arena = ArenaId::new(arena);
        }
        for &(id, start, end, window) in &self.pauses {
            let window = window.map(|(low, high)| Bytes::new(low)..Bytes::new(high));
            let steps = LiveRange::new(start, end).expect("live ranges of the corpus are not empty");
            let pauses = &mut buffers[id as usize].pauses;
            *pauses = [pauses.as_ref(), &[Pause { steps, window }]].concat().into();
        }
        let arena =
            |capacity: &Option<u64>| Arena { name: String::new(), capacity: capacity.map(Bytes::new) };
        let ids = |&(a, b): &(u32, u32)| (BufferId::new(a), BufferId::new(b));
        Instance::builder()
            .buffers(buffers)
            .arenas(self.capacities.iter().map(arena))
            .in_place(self.in_place.iter().map(ids).map(|(input, output)| InPlace { input, output }))
            .apart(self.apart.iter().map(ids).map(|(first, second)| KeepApart { first, second }))
            .build()
            .expect("a case of the corpus is valid")
    }
}
