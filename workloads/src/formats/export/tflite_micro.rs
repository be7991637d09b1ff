//! The offline plan of TensorFlow Lite Micro: where its memory planner puts each tensor, as metadata of a model.
//!
//! # References
//!
//! 1. TensorFlow Lite Micro, `docs/memory_management.md`, "Offline planned tensor allocations": the words of the buffer.
//! 2. TensorFlow Lite, `schema.fbs`: `Model`, `Metadata`, `Buffer`.

use planlab_dsa::Plan;

use crate::formats::flatbuffer::{Broken, Table};
use crate::formats::import::{METADATA, TENSORS_KEY, VIEWS_KEY};
use crate::formats::{ExportError, Trace};

const FORMAT: &str = "an offline plan of TensorFlow Lite Micro";
/// Of the format, which the runtime does not look at.
const VERSION: i32 = 1;
/// What is not placed.
const AT_RUNTIME: i32 = -1;

/// The words of an offline plan, 32 bits each with the lowest byte first: version 1, one subgraph, the number of tensors,
/// then the offset of each, or -1. A trace that was read from a `.tflite` has a word for each tensor of the model, views
/// with their buffers' offsets; any other has one for each buffer, in order.
///
/// # Errors
///
/// [`ExportError`] for several arenas, offsets past 2^31 - 1, and metadata that do not fit the buffers.
///
/// # Panics
///
/// If the plan does not belong to the trace.
pub fn write_offline_plan(trace: &Trace, plan: &Plan) -> Result<Vec<u8>, ExportError> {
    assert_eq!(plan.offsets.len(), trace.instance.len(), "one offset for each buffer");
    if trace.instance.arenas().len() > 1 {
        return Err(ExportError::new(FORMAT, "which arena a buffer lies in"));
    }
    let offsets = plan.offsets.iter().map(|offset| i32::try_from(offset.get()));
    let offsets = offsets
        .collect::<Result<Vec<i32>, _>>()
        .map_err(|_| ExportError::new(FORMAT, "an offset past 2^31 - 1"))?;
    let tensors = match trace.labels.meta_value(TENSORS_KEY) {
        Some(count) => of_tensors(trace, &offsets, count)?,
        None => offsets,
    };
    let count =
        i32::try_from(tensors.len()).map_err(|_| ExportError::new(FORMAT, "more than 2^31 - 1 tensors"))?;
    let words = [VERSION, 1, count].into_iter().chain(tensors);
    Ok(words.flat_map(i32::to_le_bytes).collect())
}

/// The offset of each tensor of a model.
fn of_tensors(trace: &Trace, offsets: &[i32], count: &str) -> Result<Vec<i32>, ExportError> {
    let no_tensor = |name: &str| {
        ExportError::new(FORMAT, format!("what tensor `{name}` is: `{TENSORS_KEY}` counts {count}"))
    };
    let count: usize = count.parse().map_err(|_| no_tensor("0"))?;
    if count > MOST_TENSORS {
        return Err(ExportError::new(FORMAT, "more than 2^24 tensors"));
    }
    let mut tensors = vec![AT_RUNTIME; count];
    for (label, &offset) in trace.labels.buffers.iter().zip(offsets) {
        let number = label.name.split_once(':').and_then(|(number, _)| number.parse::<usize>().ok());
        let tensor = number.and_then(|number| tensors.get_mut(number));
        *tensor.ok_or_else(|| no_tensor(&label.name))? = offset;
    }
    for pair in trace.labels.meta_value(VIEWS_KEY).unwrap_or_default().split_ascii_whitespace() {
        let numbers = pair.split_once('=');
        let numbers =
            numbers.and_then(|(view, of)| Some((view.parse::<usize>().ok()?, of.parse::<usize>().ok()?)));
        let Some((view, of)) = numbers.filter(|&(view, of)| view < count && of < count) else {
            return Err(no_tensor(pair));
        };
        tensors[view] = tensors[of];
    }
    Ok(tensors)
}

/// More tensors than any model for a microcontroller has.
const MOST_TENSORS: usize = 1 << 24;

/// Fields of a `Model`.
const VERSION_FIELD: u16 = 0;
const BUFFERS_FIELD: u16 = 4;
const METADATA_FIELD: u16 = 6;
/// Data of buffers begin at multiples of 16, and what is aligned in the file stays so.
const ALIGNMENT: usize = 64;

/// A model with an offline plan among its metadata, in place of one that it has. The file is put behind a new root: what
/// was in it stays as it was, byte by byte.
pub(crate) fn with_new_root(model: &[u8], plan: &[u8]) -> Result<Vec<u8>, Broken> {
    if model.get(4..8) != Some(b"TFL3") {
        return Err(Broken::new(model.len().min(4), "there is no identifier TFL3"));
    }
    let root = Table::root_table(model)?;
    let buffers = root.read_vector(BUFFERS_FIELD, 4)?;
    let mut old_buffers = Vec::with_capacity(buffers.len());
    for buffer in buffers.tables() {
        let buffer = buffer?;
        if buffer.u64(1)? > 1 {
            let reason = "its data lie behind the flatbuffer, which cannot be moved";
            return Err(Broken::new(buffer.byte_offset(), reason));
        }
        old_buffers.push(Target::Old(buffer.byte_offset()));
    }
    let mut old_metadata = Vec::new();
    for metadata in root.read_vector(METADATA_FIELD, 4)?.tables() {
        let metadata = metadata?;
        if metadata.read_vector(0, 1)?.bytes() != METADATA.as_bytes() {
            old_metadata.push(Target::Old(metadata.byte_offset()));
        }
    }
    let mut front = Front::default();
    front.push_root(root, &old_buffers, &old_metadata, plan)?;
    front.finish_front(model)
}

/// Where an offset leads.
#[derive(Clone, Copy)]
enum Target {
    /// Into the model as it was.
    Old(usize),
    /// Into what is put before it.
    New(usize),
}

/// What is put before a model.
#[derive(Default)]
struct Front {
    bytes: Vec<u8>,
    /// Offsets to fill in.
    links: Vec<(usize, Target)>,
}

impl Front {
    /// Appends a word; says where it is.
    fn push_word(&mut self, word: u32) -> usize {
        self.bytes.extend(word.to_le_bytes());
        self.bytes.len() - 4
    }

    fn push_link(&mut self, target: Target) {
        let at = self.push_word(0);
        self.links.push((at, target));
    }

    /// Zeros up to the place where the byte `ahead` from here lies at a multiple of `to`.
    fn pad_to(&mut self, to: usize, ahead: usize) {
        while !(self.bytes.len() + ahead).is_multiple_of(to) {
            self.bytes.push(0);
        }
    }

    /// A table whose fields are words that follow each other; `None` for a field that is left out. Says where each is.
    fn push_table(&mut self, fields: &[Option<u32>]) -> Vec<Option<usize>> {
        self.pad_to(4, 0);
        let vtable = self.bytes.len();
        let present = fields.iter().flatten().count();
        let short = |number: usize| u16::try_from(number).expect("a table of few fields").to_le_bytes();
        self.bytes.extend(short(4 + 2 * fields.len()));
        self.bytes.extend(short(4 + 4 * present));
        let mut place = 4;
        for field in fields {
            self.bytes.extend(short(if field.is_some() { place } else { 0 }));
            place += if field.is_some() { 4 } else { 0 };
        }
        self.pad_to(4, 0);
        let back = u32::try_from(self.bytes.len() - vtable).expect("beside each other");
        let table = self.push_word(back);
        let places = fields.iter().map(|field| field.map(|word| self.push_word(word)));
        places.chain([Some(table)]).collect()
    }

    /// A vector of offsets, whose last one is filled in later; returns the places of the vector and of that offset.
    fn push_vector(&mut self, targets: &[Target]) -> Result<(usize, usize), Broken> {
        let count = u32::try_from(targets.len() + 1).map_err(|_| Broken::new(0, "too many buffers"))?;
        let at = self.push_word(count);
        targets.iter().for_each(|&target| self.push_link(target));
        Ok((at, self.push_word(0)))
    }

    fn push_root(
        &mut self,
        root: Table<'_>,
        buffers: &[Target],
        metadata: &[Target],
        plan: &[u8],
    ) -> Result<(), Broken> {
        self.push_word(0);
        self.bytes.extend(b"TFL3");
        let count = root.field_count()?.max(METADATA_FIELD + 1);
        let mut fields = Vec::new();
        for field in 0..count {
            let is_ours = field == BUFFERS_FIELD || field == METADATA_FIELD;
            fields.push(match root.field_offset(field)? {
                Some(_) if field == VERSION_FIELD => Some(root.u32(field)?),
                Some(_) => Some(0),
                None => is_ours.then_some(0),
            });
        }
        let places = self.push_table(&fields);
        self.links.push((0, Target::New(places[usize::from(count)].unwrap_or_default())));
        let index = u32::try_from(buffers.len()).map_err(|_| Broken::new(0, "too many buffers"))?;
        let (buffers_at, new_buffer) = self.push_vector(buffers)?;
        let (metadata_at, new_metadata) = self.push_vector(metadata)?;
        for field in 1..count {
            let Some(place) = places[usize::from(field)] else { continue };
            let target = match field {
                BUFFERS_FIELD => Target::New(buffers_at),
                METADATA_FIELD => Target::New(metadata_at),
                other => Target::Old(root.target_offset(other)?.unwrap_or_default()),
            };
            self.links.push((place, target));
        }
        let buffer = self.push_table(&[Some(0)]);
        self.links.push((new_buffer, Target::New(buffer[1].unwrap_or_default())));
        self.pad_to(16, 4);
        self.links.push((buffer[0].unwrap_or_default(), Target::New(self.bytes.len())));
        self.push_word(u32::try_from(plan.len()).map_err(|_| Broken::new(0, "too long a plan"))?);
        self.bytes.extend(plan);
        let entry = self.push_table(&[Some(0), Some(index)]);
        self.links.push((new_metadata, Target::New(entry[2].unwrap_or_default())));
        self.pad_to(4, 0);
        self.links.push((entry[0].unwrap_or_default(), Target::New(self.bytes.len())));
        self.push_word(u32::try_from(METADATA.len()).expect("short"));
        self.bytes.extend(METADATA.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    /// The front with all offsets, and the model behind it.
    fn finish_front(mut self, model: &[u8]) -> Result<Vec<u8>, Broken> {
        self.pad_to(ALIGNMENT, 0);
        let front = self.bytes.len();
        for (at, target) in self.links {
            let to = match target {
                Target::Old(to) => front + to,
                Target::New(to) => to,
            };
            let far =
                u32::try_from(to - at).map_err(|_| Broken::new(0, "the model is too large for offsets"))?;
            self.bytes[at..at + 4].copy_from_slice(&far.to_le_bytes());
        }
        self.bytes.extend(model);
        Ok(self.bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::formats::export::testing::planned;
    use crate::formats::flatbuffer::testing::{Field, write};
    use crate::formats::{ReadOptions, read_trace};

    /// Numbers of a file, read without any of the code above.
    struct Plain<'b>(&'b [u8]);

    impl Plain<'_> {
        fn long(&self, at: usize) -> usize {
            u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes")) as usize
        }

        fn short(&self, at: usize) -> usize {
            usize::from(u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes")))
        }

        fn field(&self, table: usize, number: usize) -> usize {
            let vtable = table - self.long(table);
            assert!(self.short(vtable) > 4 + 2 * number, "the field is there");
            table + self.short(vtable + 4 + 2 * number)
        }

        fn follow(&self, at: usize) -> usize {
            at + self.long(at)
        }
    }

    /// The words of the offline plan in a model.
    pub(crate) fn plan_in(model: &[u8]) -> Vec<i32> {
        let plain = Plain(model);
        assert_eq!(&model[4..8], b"TFL3");
        let root = plain.follow(0);
        let metadata = plain.follow(plain.field(root, 6));
        let last = plain.follow(metadata + 4 * plain.long(metadata));
        let name = plain.follow(plain.field(last, 0));
        assert_eq!(&model[name + 4..name + 4 + plain.long(name)], b"OfflineMemoryAllocation");
        let buffers = plain.follow(plain.field(root, 4));
        let number = plain.long(plain.field(last, 1));
        assert!(number < plain.long(buffers));
        let data = plain.follow(plain.field(plain.follow(buffers + 4 + 4 * number), 0));
        assert!((data + 4).is_multiple_of(16), "aligned");
        words(&model[data + 4..data + 4 + plain.long(data)])
    }

    fn words(bytes: &[u8]) -> Vec<i32> {
        bytes.as_chunks::<4>().0.iter().map(|&word| i32::from_le_bytes(word)).collect()
    }

    /// A model with nothing but a version, an empty first buffer, and a subgraph with a tensor, an input and an output.
    pub(crate) fn model() -> Vec<u8> {
        let ints = |ints: &[i32]| Some(Field::Ints(ints.to_vec()));
        let tensors = Field::Tables(vec![vec![ints(&[4, 4])]]);
        model_of(None, vec![vec![Some(tensors), ints(&[0]), ints(&[0])]])
    }

    /// A model of operators' codes and of subgraphs, with a version and an empty first buffer.
    pub(crate) fn model_of(codes: Option<Field>, subgraphs: Vec<Vec<Option<Field>>>) -> Vec<u8> {
        let tables = |tables| Some(Field::Tables(tables));
        let root = [Some(Field::Number(3)), codes, tables(subgraphs), None, tables(vec![vec![]])];
        let mut bytes = b"\0\0\0\0TFL3".to_vec();
        write(&mut bytes, &root, 0);
        bytes
    }

    #[test]
    fn words_say_where_each_buffer_goes() {
        let (trace, plan) = planned();
        let bytes = write_offline_plan(&trace, &plan).expect("one arena");
        assert_eq!(words(&bytes), [1, 1, 3, 0, 64, 0]);
    }

    #[test]
    fn tensors_of_a_model_have_their_words() {
        let text = "# tflite-tensors: 6\n# tflite-views: 4=2\nid,lower,upper,size\n0:x,0,1,4\n2:y,0,2,8\n";
        let trace = read_trace("m", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let plan = Plan::from_offsets([8, 0].map(planlab_dsa::Offset::new));
        let bytes = write_offline_plan(&trace, &plan).expect("fits");
        assert_eq!(words(&bytes), [1, 1, 6, 8, -1, 0, -1, 0, -1]);
        let text = text.replace("2:y", "y");
        let trace = read_trace("m", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let error = write_offline_plan(&trace, &plan).expect_err("no number");
        assert!(error.to_string().contains("what tensor `y` is"), "{error}");
    }

    #[test]
    fn a_plan_goes_into_a_model_and_is_read_back() {
        let plan: Vec<u8> = [1, 1, 1, 48].into_iter().flat_map(i32::to_le_bytes).collect();
        let with = with_new_root(&model(), &plan).expect("a model");
        assert_eq!(plan_in(&with), [1, 1, 1, 48]);
        // A second plan takes the place of the first.
        let other: Vec<u8> = [1, 1, 1, -1].into_iter().flat_map(i32::to_le_bytes).collect();
        let again = with_new_root(&with, &other).expect("a model");
        assert_eq!(plan_in(&again), [1, 1, 1, -1]);
        let trace = read_trace("m.tflite", &with, &ReadOptions::default()).expect("still a model");
        assert_eq!(trace.instance.buffers()[0].size.get(), 64);
        assert_eq!(trace.labels.meta_value(TENSORS_KEY), Some("1"));
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let error = with_new_root(b"id,lower,upper", &[]).expect_err("none");
        assert_eq!((error.at, error.reason.as_str()), (4, "there is no identifier TFL3"));
        let whole = model();
        for cut in 8..whole.len() {
            let _ = with_new_root(&whole[..cut], &[]);
        }
    }
}
