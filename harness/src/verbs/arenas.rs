//! Heights and loads arena by arena. Planners lower the sum of the heights; a capacity, a load and its step are of one
//! arena.

use planlab_dsa::{ArenaId, Bytes, Instance, Load, printable_line};
use planlab_results::table::Table;
use serde_json::{Value, json};

use crate::shell::quantity::format_memory;

/// The arenas of an instance and their loads.
pub(super) struct ArenaSizes<'i> {
    instance: &'i Instance,
    loads: Vec<Load>,
}

impl<'i> ArenaSizes<'i> {
    pub(super) fn from_instance(instance: &'i Instance) -> Self {
        Self { instance, loads: instance.arena_loads() }
    }

    /// Whether figures of the whole are sums.
    pub(super) fn are_several(&self) -> bool {
        self.loads.len() > 1
    }

    /// A remark behind a figure of the whole: `, the sum of 2 arenas`; empty for one arena.
    pub(super) fn sum_remark(&self) -> String {
        if self.are_several() { format!(", the sum of {} arenas", self.loads.len()) } else { String::new() }
    }

    /// The arenas for programs; the heights are those of a plan, if there is one.
    pub(super) fn arena_objects(&self, heights: Option<&[Bytes]>) -> Value {
        let object = |(number, load): (usize, &Load)| {
            let arena = &self.instance.arenas()[number];
            let height = heights.map(|heights| heights[number]);
            json!({ "name": arena.name, "capacity": arena.capacity, "height": height, "load": load.bytes })
        };
        Value::Array(self.loads.iter().enumerate().map(object).collect())
    }

    /// A row for each of several arenas; `None` for one arena.
    pub(super) fn arena_table(&self, heights: Option<&[Bytes]>) -> Option<Table> {
        let mut table = Table::new(&["arena", "capacity", "height", "load", "first step of it"]);
        for (number, load) in self.loads.iter().enumerate() {
            let capacity = self.instance.arenas()[number].capacity;
            let size =
                |bytes: Option<Bytes>| bytes.map_or_else(String::new, |bytes| format_memory(bytes.get()));
            let step = if load.bytes == Bytes::ZERO { String::new() } else { load.step.to_string() };
            table.push_texts([
                self.arena_name(number),
                size(capacity),
                size(heights.map(|heights| heights[number])),
                format_memory(load.bytes.get()),
                step,
            ]);
        }
        self.are_several().then(|| table.without_empty_columns())
    }

    /// The height of each arena by each planner; `None` for one arena.
    pub(super) fn comparison_table<'p>(
        &self,
        plans: impl IntoIterator<Item = (&'p str, Option<&'p [Bytes]>)>,
    ) -> Option<Table> {
        let names: Vec<String> = (0..self.loads.len()).map(|number| self.arena_name(number)).collect();
        let titles: Vec<&str> = std::iter::once("planner").chain(names.iter().map(String::as_str)).collect();
        let mut table = Table::new(&titles);
        for (planner, heights) in plans {
            let height = |number: usize| {
                heights.map_or_else(String::new, |heights| format_memory(heights[number].get()))
            };
            table.push_texts(std::iter::once(planner.to_owned()).chain((0..names.len()).map(height)));
        }
        self.are_several().then_some(table)
    }

    fn arena_name(&self, number: usize) -> String {
        let arena = ArenaId::new(u16::try_from(number).expect("an arena's number has 16 bits"));
        printable_line(&self.instance.arena_name(arena)).into_owned()
    }
}
