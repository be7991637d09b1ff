//! Stores instances with their labels, and plans, as Parquet files under their digests.
//!
//! An instance is a table with one row per buffer. Columns without any value (no pins, no pauses, no categories) are
//! left out. Permissions are lists at the row of the output, keep-apart pairs at the row of the first buffer; arenas
//! and metadata are in the file's metadata.

use std::path::{Path, PathBuf};

use planlab_dsa::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, Digest, InPlace, Instance, KeepApart, Label, Labels,
    LiveRange, Offset, Pause, Plan,
};
use polars::prelude::*;

use super::writer::Store;
use crate::StoreError;
use crate::columns::{self, Kind, Table, lists_of, lists_opt_u64};
use crate::files::disk;

const INSTANCE: Kind = Kind { name: "instance", version: 1 };
const PLAN: Kind = Kind { name: "plan", version: 1 };
const ARENAS: &str = "planlab.arenas";
const METADATA: &str = "planlab.metadata";

fn instance_path(dir: &Path, digest: Digest) -> PathBuf {
    dir.join("instances").join(format!("{digest}.parquet"))
}

fn plan_path(dir: &Path, digest: Digest) -> PathBuf {
    dir.join("plans").join(format!("{digest}.parquet"))
}

impl Store {
    /// Stores an instance with its labels under its digest. An intact existing file stays unchanged, labels included.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], or [`StoreError::Labels`] if there is not one label per buffer.
    pub fn put_instance(&self, instance: &Instance, labels: &Labels) -> Result<Digest, StoreError> {
        if labels.buffers.len() != instance.len() {
            return Err(StoreError::Labels { labels: labels.buffers.len(), buffers: instance.len() });
        }
        let digest = instance.digest();
        // A damaged file is written again.
        if load_instance(self.dir(), digest).is_err() {
            write_encoded(&instance_path(self.dir(), digest), encode_instance(instance, labels))?;
        }
        Ok(digest)
    }

    /// Stores a plan under its digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_plan(&self, plan: &Plan) -> Result<Digest, StoreError> {
        let digest = Digest::of_plan(plan);
        if load_plan(self.dir(), digest).is_err() {
            write_encoded(&plan_path(self.dir(), digest), encode_plan(plan))?;
        }
        Ok(digest)
    }
}

fn write_encoded(path: &Path, bytes: PolarsResult<Vec<u8>>) -> Result<(), StoreError> {
    disk::write_whole(path, &bytes.map_err(|error| StoreError::bad_file(path, &error))?)
}

/// Loads the instance with this digest from a store, with its labels.
///
/// # Errors
///
/// [`StoreError::Io`] if the store has no such instance, [`StoreError::BadFile`] if its file is damaged.
pub fn load_instance(dir: impl AsRef<Path>, digest: Digest) -> Result<(Instance, Labels), StoreError> {
    let path = instance_path(dir.as_ref(), digest);
    let bytes = std::fs::read(&path).map_err(StoreError::from_io("read", &path))?;
    let table = Table::decode_parquet(&path, bytes, INSTANCE)?;
    let instance = decode_instance(&table)?;
    check_digest(&path, instance.digest(), digest)?;
    Ok((instance, decode_labels(&table)?))
}

/// Loads the plan with this digest from a store. It is only a claim: check it with [`Instance::verify`].
///
/// # Errors
///
/// [`StoreError::Io`] if the store has no such plan, [`StoreError::BadFile`] if its file is damaged.
pub fn load_plan(dir: impl AsRef<Path>, digest: Digest) -> Result<Plan, StoreError> {
    let path = plan_path(dir.as_ref(), digest);
    let bytes = std::fs::read(&path).map_err(StoreError::from_io("read", &path))?;
    let plan = decode_plan(&Table::decode_parquet(&path, bytes, PLAN)?)?;
    check_digest(&path, Digest::of_plan(&plan), digest)?;
    Ok(plan)
}

/// Refuses a file whose content has another digest than its name.
fn check_digest(path: &Path, found: Digest, named: Digest) -> Result<(), StoreError> {
    let reason = format!("its content has digest {found}, its name says {named}");
    if found == named { Ok(()) } else { Err(StoreError::bad_file(path, &reason)) }
}

fn encode_instance(instance: &Instance, labels: &Labels) -> PolarsResult<Vec<u8>> {
    let mut columns = buffer_columns(instance.buffers());
    columns.extend(pause_columns(instance.buffers()));
    columns.extend(pair_columns(instance));
    columns.extend(label_columns(&labels.buffers));
    let mut frame = DataFrame::new(instance.len(), columns)?;
    let arenas: Vec<_> = instance.arenas().iter().map(|a| (&a.name, a.capacity)).collect();
    let extra =
        vec![(ARENAS.to_owned(), json_text(&arenas)?), (METADATA.to_owned(), json_text(&labels.metadata)?)];
    columns::encode(INSTANCE, extra, &mut frame)
}

fn json_text(value: &impl serde::Serialize) -> PolarsResult<String> {
    serde_json::to_string(value).map_err(|error| polars_err!(ComputeError: "{error}"))
}

fn buffer_columns(buffers: &[Buffer]) -> Vec<Column> {
    let numbers = |part: fn(&Buffer) -> u64| buffers.iter().map(part).collect::<Vec<_>>();
    let small = |part: fn(&Buffer) -> u32| buffers.iter().map(part).collect::<Vec<_>>();
    let mut columns = vec![
        Column::new("size".into(), numbers(|b| b.size.get())),
        Column::new("lower".into(), small(|b| b.live.start().get())),
        Column::new("upper".into(), small(|b| b.live.end().get())),
        Column::new("alignment".into(), numbers(|b| b.align.get())),
        Column::new("arena".into(), small(|b| u32::from(b.arena.get()))),
    ];
    columns.extend(unless_empty("pin", buffers.iter().map(|b| b.pin.map(Offset::get)).collect()));
    columns
}

/// A column of numbers; `None` if no row has one.
fn unless_empty(name: &str, values: Vec<Option<u64>>) -> Option<Column> {
    values.iter().any(Option::is_some).then(|| Column::new(name.into(), values))
}

fn pause_columns(buffers: &[Buffer]) -> Vec<Column> {
    if buffers.iter().all(|buffer| buffer.pauses.is_empty()) {
        return Vec::new();
    }
    let lists = |name, part: fn(&Pause) -> Option<u64>| {
        lists_opt_u64(name, buffers.iter().map(move |b| b.pauses.iter().map(part).collect::<Vec<_>>()))
    };
    vec![
        lists("pause_lower", |p| Some(u64::from(p.steps.start().get()))),
        lists("pause_upper", |p| Some(u64::from(p.steps.end().get()))),
        lists("pause_window_lower", |p| p.window.as_ref().map(|w| w.start.get())),
        lists("pause_window_upper", |p| p.window.as_ref().map(|w| w.end.get())),
    ]
}

fn pair_columns(instance: &Instance) -> Vec<Column> {
    let mut columns = Vec::new();
    if !instance.in_place().is_empty() {
        let mut inputs = vec![Vec::new(); instance.len()];
        for pair in instance.in_place() {
            inputs[pair.output.index()].push(u64::from(pair.input.get()));
        }
        columns.push(lists_of::<UInt64Type>("may_overwrite", inputs.iter().map(Vec::as_slice)));
    }
    if !instance.keep_apart_pairs().is_empty() {
        let (mut seconds, mut ranks) = (vec![Vec::new(); instance.len()], vec![Vec::new(); instance.len()]);
        for (pair, rank) in instance.keep_apart_pairs().iter().zip(0_u64..) {
            seconds[pair.first.index()].push(u64::from(pair.second.get()));
            ranks[pair.first.index()].push(rank);
        }
        columns.push(lists_of::<UInt64Type>("apart_from", seconds.iter().map(Vec::as_slice)));
        columns.push(lists_of::<UInt64Type>("apart_rank", ranks.iter().map(Vec::as_slice)));
    }
    columns
}

fn label_columns(labels: &[Label]) -> Vec<Column> {
    let texts = |name: &str, part: fn(&Label) -> Option<&str>| {
        let values: Vec<Option<&str>> = labels.iter().map(part).collect();
        values.iter().any(Option::is_some).then(|| Column::new(name.into(), values))
    };
    let numbers =
        |name, part: fn(&Label) -> Option<u64>| unless_empty(name, labels.iter().map(part).collect());
    let names: Vec<&str> = labels.iter().map(|label| label.name.as_str()).collect();
    let columns = [
        Some(Column::new("id".into(), names)),
        texts("category", |l| l.category.as_deref()),
        texts("op", |l| l.op.as_deref()),
        numbers("requested", |l| l.requested.map(Bytes::get)),
        numbers("original_lower", |l| Some(l.original_steps?.0)),
        numbers("original_upper", |l| Some(l.original_steps?.1)),
        numbers("row", |l| l.row),
        numbers("hint", |l| l.hint),
    ];
    columns.into_iter().flatten().collect()
}

fn decode_instance(table: &Table) -> Result<Instance, StoreError> {
    let arenas: Vec<(String, Option<Bytes>)> =
        serde_json::from_str(table.metadata_value(ARENAS)?).map_err(|error| table.bad_file(&error))?;
    Instance::builder()
        .buffers(decode_buffers(table)?)
        .in_place(decode_in_place(table)?)
        .arenas(arenas.into_iter().map(|(name, capacity)| Arena { name, capacity }))
        .apart(decode_apart(table)?)
        .build()
        .map_err(|error| table.bad_file(&error))
}

fn decode_buffers(table: &Table) -> Result<Vec<Buffer>, StoreError> {
    let (sizes, aligns) = (table.u64("size")?, table.u64("alignment")?);
    let (lower, upper, arenas) = (table.u32("lower")?, table.u32("upper")?, table.u32("arena")?);
    let pins = optional_column(table, "pin")?;
    let mut pauses = decode_pauses(table)?;
    let mut buffers = Vec::with_capacity(sizes.len());
    for row in 0..sizes.len() {
        let live = LiveRange::new(lower[row], upper[row]).map_err(|error| table.bad_file(&error))?;
        let align = Alignment::new(aligns[row]).ok_or_else(|| table.bad_file(&"an alignment is 0"))?;
        let arena = u16::try_from(arenas[row]).map_err(|error| table.bad_file(&error))?;
        let mut buffer =
            Buffer::new(Bytes::new(sizes[row]), live).with_align(align).in_arena(ArenaId::new(arena));
        buffer.pin = pins[row].map(Offset::new);
        if let Some(pauses) = pauses.get_mut(row) {
            buffer.pauses = std::mem::take(pauses).into();
        }
        buffers.push(buffer);
    }
    Ok(buffers)
}

/// A column that may be absent.
fn optional_column(table: &Table, name: &str) -> Result<Vec<Option<u64>>, StoreError> {
    if table.has_column(name) { table.opt_u64(name) } else { Ok(vec![None; table.height()]) }
}

/// The pauses of each buffer; an empty list if no buffer has any.
fn decode_pauses(table: &Table) -> Result<Vec<Vec<Pause>>, StoreError> {
    if !table.has_column("pause_lower") {
        return Ok(Vec::new());
    }
    let (lower, upper) = (table.lists_u64("pause_lower")?, table.lists_u64("pause_upper")?);
    let (from, to) = (table.list_column("pause_window_lower")?, table.list_column("pause_window_upper")?);
    let columns = lower.iter().zip(&upper).zip(from.iter().zip(&to));
    let rows = columns.map(|((lower, upper), (from, to))| {
        let pauses = lower.iter().zip(upper).zip(from.iter().zip(to));
        pauses
            .map(|((&lower, &upper), (&from, &to))| build_pause(table, (lower, upper), from.zip(to)))
            .collect()
    });
    rows.collect()
}

fn build_pause(table: &Table, steps: (u64, u64), window: Option<(u64, u64)>) -> Result<Pause, StoreError> {
    let small = |step: u64| u32::try_from(step).map_err(|error| table.bad_file(&error));
    let steps = LiveRange::new(small(steps.0)?, small(steps.1)?).map_err(|error| table.bad_file(&error))?;
    Ok(Pause { steps, window: window.map(|(from, to)| Bytes::new(from)..Bytes::new(to)) })
}

fn decode_in_place(table: &Table) -> Result<Vec<InPlace>, StoreError> {
    let mut pairs = Vec::new();
    if table.has_column("may_overwrite") {
        for (output, inputs) in table.lists_u64("may_overwrite")?.into_iter().enumerate() {
            for input in inputs {
                let (input, output) = (buffer_id(table, input)?, BufferId::from_index(output));
                pairs.push(InPlace { input, output });
            }
        }
    }
    Ok(pairs)
}

fn decode_apart(table: &Table) -> Result<Vec<KeepApart>, StoreError> {
    let mut ranked = Vec::new();
    if table.has_column("apart_from") {
        let (seconds, ranks) = (table.lists_u64("apart_from")?, table.lists_u64("apart_rank")?);
        for (first, (seconds, ranks)) in seconds.into_iter().zip(ranks).enumerate() {
            for (second, rank) in seconds.into_iter().zip(ranks) {
                let (first, second) = (BufferId::from_index(first), buffer_id(table, second)?);
                ranked.push((rank, KeepApart { first, second }));
            }
        }
    }
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|(_, pair)| pair).collect())
}

fn buffer_id(table: &Table, number: u64) -> Result<BufferId, StoreError> {
    u32::try_from(number).map(BufferId::new).map_err(|error| table.bad_file(&error))
}

fn decode_labels(table: &Table) -> Result<Labels, StoreError> {
    let metadata =
        serde_json::from_str(table.metadata_value(METADATA)?).map_err(|error| table.bad_file(&error))?;
    let text =
        |name| if table.has_column(name) { table.opt_text(name) } else { Ok(vec![None; table.height()]) };
    let (mut categories, mut ops) = (text("category")?, text("op")?);
    let number = |name| optional_column(table, name);
    let (requested, rows, hints) = (number("requested")?, number("row")?, number("hint")?);
    let (lower, upper) = (number("original_lower")?, number("original_upper")?);
    let labels = table.text_column("id")?.into_iter().enumerate().map(|(at, name)| Label {
        name,
        category: categories[at].take(),
        op: ops[at].take(),
        requested: requested[at].map(Bytes::new),
        original_steps: lower[at].zip(upper[at]),
        row: rows[at],
        hint: hints[at],
    });
    Ok(Labels { buffers: labels.collect(), metadata })
}

/// The offsets by buffer, and in separate columns the hand-overs, from the first row on.
fn encode_plan(plan: &Plan) -> PolarsResult<Vec<u8>> {
    let height = plan.offsets.len().max(plan.in_place.len());
    let offsets = (0..height).map(|row| plan.offsets.get(row).map(|offset| offset.get()));
    let mut columns = vec![Column::new("offset".into(), offsets.collect::<Vec<_>>())];
    if !plan.in_place.is_empty() {
        let pairs = |part: fn(&InPlace) -> u32| {
            (0..height).map(|row| plan.in_place.get(row).map(part)).collect::<Vec<Option<u32>>>()
        };
        columns.push(Column::new("input".into(), pairs(|pair| pair.input.get())));
        columns.push(Column::new("output".into(), pairs(|pair| pair.output.get())));
    }
    columns::encode(PLAN, Vec::new(), &mut DataFrame::new(height, columns)?)
}

fn decode_plan(table: &Table) -> Result<Plan, StoreError> {
    let offsets = table.opt_u64("offset")?.into_iter().flatten().map(Offset::new).collect();
    let mut in_place = Vec::new();
    if table.has_column("input") {
        let pairs = table.opt_u32("input")?.into_iter().zip(table.opt_u32("output")?);
        in_place = pairs
            .filter_map(|(input, output)| {
                Some(InPlace { input: BufferId::new(input?), output: BufferId::new(output?) })
            })
            .collect();
    }
    Ok(Plan { offsets, in_place })
}
