//! Collects what a file says, and makes the instance of it at the end.

use planlab_dsa::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, InPlace, Instance, InstanceError, KeepApart, Label,
    Labels, LiveRange, Offset, Pause,
};
use rustc_hash::FxHashMap;

use super::directive::{self, ALIGNMENT_KEY, ARENA_KEY, RANK_KEY, UNIT_KEY};
use super::ids::unescape;
use super::pauses::{RawPause, check_gaps};
use crate::formats::error::quote_excerpt;
use crate::formats::input::numbers::whole;
use crate::formats::{FormatError, ReadOptions, Trace};

/// Metadata of a plan, in its first line.
pub(crate) const PLAN_MARK: (&str, &str) = ("planlab", "plan");

/// More comments than any file has: they are kept in memory.
const MOST_COMMENTS: usize = 1 << 16;

/// A buffer as the file has it, half-open.
#[derive(Default)]
pub(crate) struct RawBuffer {
    pub(crate) label: Label,
    pub(crate) lower: u64,
    pub(crate) upper: u64,
    pub(crate) size: u64,
    pub(crate) align: Option<Alignment>,
    pub(crate) pin: Option<u64>,
    pub(crate) pauses: Vec<RawPause>,
}

/// A file half read.
pub(crate) struct Draft<'f> {
    file: &'f str,
    pub(crate) options: &'f ReadOptions,
    metadata: Vec<(String, String)>,
    default_align: Option<Alignment>,
    /// Lines with `#` so far.
    comments: usize,
    /// Directives that count once, and their lines.
    said: Vec<(&'static str, u64)>,
    pub(crate) header_line: u64,
    buffers: Vec<Buffer>,
    labels: Vec<Label>,
    /// Whether a buffer names no alignment; the default is known only once all metadata are read.
    takes_default: Vec<bool>,
    steps: Vec<(u64, u64)>,
    pauses: Vec<(usize, Vec<RawPause>)>,
    arenas: Vec<Arena>,
    /// Declared arenas come first; those that only cells name follow.
    declared: usize,
    /// The first buffer whose row names no arena.
    without_arena: Option<usize>,
    overwrites: Vec<(usize, String)>,
    apart: Vec<(usize, String)>,
    pub(crate) is_plan: bool,
    pub(crate) notices: Vec<String>,
}

impl<'f> Draft<'f> {
    pub(crate) fn new(file: &'f str, options: &'f ReadOptions) -> Self {
        Self {
            file,
            options,
            metadata: Vec::new(),
            default_align: None,
            comments: 0,
            said: Vec::new(),
            header_line: 1,
            buffers: Vec::new(),
            labels: Vec::new(),
            takes_default: Vec::new(),
            steps: Vec::new(),
            pauses: Vec::new(),
            arenas: Vec::new(),
            declared: 0,
            without_arena: None,
            overwrites: Vec::new(),
            apart: Vec::new(),
            is_plan: false,
            notices: Vec::new(),
        }
    }

    pub(crate) fn error_at(&self, line: u64, reason: impl Into<String>) -> FormatError {
        FormatError::new(self.file, line, reason)
    }

    /// Sets metadata that are no directive.
    pub(crate) fn set_metadata(&mut self, key: &str, value: impl Into<String>) {
        self.metadata.push((key.to_owned(), value.into()));
    }

    /// Takes the comment of a line in: `key: value` is metadata or a directive, all else is prose.
    pub(crate) fn read_comment(&mut self, line: u64, comment: &str) -> Result<(), String> {
        self.comments += 1;
        if self.comments > MOST_COMMENTS {
            return Err(format!("more than {MOST_COMMENTS} comments"));
        }
        let Some((key, value)) = comment.split_once(':') else {
            self.notices.extend(directive::misspelling_notice(self.file, line, comment));
            return Ok(());
        };
        let (key, value) = (key.trim_ascii(), value.trim_ascii());
        match directive::find_directive(key) {
            _ if (key, value) == PLAN_MARK => self.is_plan = true,
            Some(ARENA_KEY) => self.declare_arena(&comment[ARENA_KEY.len()..])?,
            Some(ALIGNMENT_KEY) => {
                self.say_once(ALIGNMENT_KEY, line)?;
                let bytes = whole("the alignment", value)?;
                self.default_align = Some(Alignment::new(bytes).ok_or("the alignment is 0")?);
                self.metadata.push((ALIGNMENT_KEY.to_owned(), value.to_owned()));
            }
            Some(UNIT_KEY) if directive::nanoseconds_per_step(value).is_none() => {
                return Err(format!("the step unit `{}` is not one of ns, us, ms, s", quote_excerpt(value)));
            }
            Some(known) => {
                self.say_once(known, line)?;
                self.metadata.push((known.to_owned(), value.to_owned()));
            }
            None => {
                self.notices.extend(directive::misspelling_notice(self.file, line, comment));
                self.metadata.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Refuses a directive that was given before: which of the two counts would be anybody's guess.
    fn say_once(&mut self, key: &'static str, line: u64) -> Result<(), String> {
        match self.said.iter().find(|(known, _)| *known == key) {
            Some((_, first)) => Err(format!("`# {key}` is there twice, in lines {first} and {line}")),
            None => {
                self.said.push((key, line));
                Ok(())
            }
        }
    }

    /// Takes ` NAME: capacity` in.
    fn declare_arena(&mut self, rest: &str) -> Result<(), String> {
        let (name, capacity) = rest.rsplit_once(':').ok_or("an arena without `: capacity`")?;
        let (name, capacity) = (name.trim_ascii(), capacity.trim_ascii());
        if self.arenas.iter().any(|arena| arena.name == name) {
            return Err(format!("the arena `{}` is declared twice", quote_excerpt(name)));
        }
        let capacity = match capacity {
            "" | "unlimited" => None,
            bytes => Some(Bytes::new(whole("the arena's capacity", bytes)?)),
        };
        self.arenas.push(Arena { name: name.to_owned(), capacity });
        self.declared = self.arenas.len();
        Ok(())
    }

    /// The arena of the next buffer, by the name in its cell. An empty cell names the only arena of the trace, or the
    /// declared one without a name.
    pub(crate) fn find_arena(&mut self, name: &str) -> Result<ArenaId, String> {
        let name = name.trim_ascii();
        let index = match self.arenas.iter().position(|arena| arena.name == name) {
            Some(index) => index,
            None if name.is_empty() => {
                self.without_arena.get_or_insert(self.buffers.len());
                0
            }
            None => {
                self.arenas.push(Arena { name: name.to_owned(), capacity: None });
                self.arenas.len() - 1
            }
        };
        u16::try_from(index).map(ArenaId::new).map_err(|_| "more than 65536 arenas".to_owned())
    }

    pub(crate) fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Makes room for exactly this many more buffers.
    pub(crate) fn reserve_buffers(&mut self, buffers: usize) {
        self.buffers.reserve_exact(buffers);
        self.labels.reserve_exact(buffers);
        self.takes_default.reserve_exact(buffers);
        self.steps.reserve_exact(buffers);
    }

    /// Takes a buffer in, and says its number; its life is not empty.
    pub(crate) fn append_buffer(&mut self, raw: RawBuffer, arena: ArenaId) -> usize {
        let number = self.buffers.len();
        let one_step = LiveRange::new(0, 1).expect("not empty");
        self.buffers.push(Buffer {
            size: Bytes::new(raw.size),
            live: one_step,
            align: raw.align.unwrap_or(Alignment::ONE),
            pin: raw.pin.map(Offset::new),
            arena,
            pauses: Box::default(),
        });
        self.takes_default.push(raw.align.is_none());
        self.labels.push(raw.label);
        self.steps.push((raw.lower, raw.upper));
        if !raw.pauses.is_empty() {
            self.pauses.push((number, raw.pauses));
        }
        number
    }

    /// Gives a buffer its end afterwards (an event list knows it later than the start).
    pub(crate) fn set_upper(&mut self, buffer: usize, upper: u64) {
        self.steps[buffer].1 = upper;
    }

    /// The life of a buffer as the file has it, half-open.
    pub(crate) fn raw_range(&self, buffer: usize) -> (u64, u64) {
        self.steps[buffer]
    }

    /// The name of a buffer.
    pub(crate) fn name(&self, buffer: usize) -> &str {
        &self.labels[buffer].name
    }

    /// Checks the pauses of all buffers against their lives, which were not known when they were read.
    pub(crate) fn check_pauses(&self) -> Result<(), FormatError> {
        for (buffer, pauses) in &self.pauses {
            let checked = check_gaps(pauses, self.steps[*buffer], self.buffers[*buffer].size.get());
            checked.map_err(|reason| self.error_at(self.line(*buffer), reason))?;
        }
        Ok(())
    }

    pub(crate) fn may_overwrite(&mut self, buffer: usize, ids: &str) {
        if !ids.is_empty() {
            self.overwrites.push((buffer, ids.to_owned()));
        }
    }

    pub(crate) fn keep_apart(&mut self, buffer: usize, ids: &str) {
        if !ids.is_empty() {
            self.apart.push((buffer, ids.to_owned()));
        }
    }

    fn line(&self, buffer: usize) -> u64 {
        self.labels.get(buffer).and_then(|label| label.row).unwrap_or(self.header_line)
    }

    pub(crate) fn build_trace(mut self) -> Result<Trace, FormatError> {
        self.check_arenas()?;
        self.align_sizes()?;
        self.rank_steps();
        let numbers = self.buffers_by_id()?;
        let mut overwrites = self.parse_pairs(&self.overwrites, &numbers, "may_overwrite")?;
        let apart = self.parse_pairs(&self.apart, &numbers, "apart")?;
        drop(numbers);
        if self.options.without_in_place && !overwrites.is_empty() {
            let count = overwrites.len();
            self.notices.push(format!("permissions to overwrite a buffer in place were left out: {count}"));
            overwrites.clear();
        }
        let permissions = overwrites.into_iter().map(|(output, input)| InPlace { input, output });
        let pairs = apart.into_iter().map(|(first, second)| KeepApart { first, second });
        let buffers = std::mem::take(&mut self.buffers);
        let builder = Instance::builder().buffers(buffers).arenas(std::mem::take(&mut self.arenas));
        let instance =
            builder.in_place(permissions).apart(pairs).build().map_err(|error| self.locate_error(&error))?;
        let labels = Labels { buffers: self.labels, metadata: self.metadata };
        Ok(Trace { instance, labels, notices: self.notices })
    }

    /// Refuses a buffer that names no arena if there are several, or if only other buffers name one.
    fn check_arenas(&self) -> Result<(), FormatError> {
        const MOST: usize = 4;
        let Some(buffer) = self.without_arena else { return Ok(()) };
        if self.arenas.len() == self.declared && self.declared <= 1 {
            return Ok(());
        }
        let named = self.arenas.iter().map(|arena| format!("`{}`", quote_excerpt(&arena.name)));
        let mut names: Vec<String> = named.take(MOST).collect();
        if self.arenas.len() > MOST {
            names.push("...".to_owned());
        }
        let reason = format!(
            "buffer `{}` names no arena, but the trace has {}: the column `arena` names one in each row, such as {}",
            quote_excerpt(self.name(buffer)),
            names.join(", "),
            names[0]
        );
        Err(self.error_at(self.line(buffer), reason))
    }

    /// Rounds sizes up and fills default alignments in.
    fn align_sizes(&mut self) -> Result<(), FormatError> {
        if let Some(align) = self.options.alignment {
            self.default_align = Some(align);
            self.metadata.retain(|(key, _)| key != ALIGNMENT_KEY);
            self.metadata.push((ALIGNMENT_KEY.to_owned(), align.to_string()));
        }
        let default = self.default_align.unwrap_or(Alignment::ONE);
        for index in 0..self.buffers.len() {
            let size = self.buffers[index].size;
            let Some(rounded) = default.round_up(size.get()) else {
                let reason =
                    format!("size {size}, rounded up to the alignment {default}, does not fit 64 bits");
                return Err(self.error_at(self.line(index), reason));
            };
            self.buffers[index].size = Bytes::new(rounded);
            if self.takes_default[index] {
                self.buffers[index].align = default;
            }
            self.labels[index].requested = self.default_align.is_some().then_some(size);
        }
        Ok(())
    }

    /// Gives every buffer its live range and pauses, ranked where the steps ask for it.
    fn rank_steps(&mut self) {
        let asked = self.options.rank_steps || self.metadata.iter().any(|(key, _)| key == RANK_KEY);
        if asked && !self.metadata.iter().any(|(key, _)| key == RANK_KEY) {
            self.metadata.push((RANK_KEY.to_owned(), "yes".to_owned()));
        }
        let largest = self.steps.iter().map(|&(_, upper)| upper).max().unwrap_or(0);
        let ranks = if asked || largest > u64::from(u32::MAX) { Some(self.step_ranks()) } else { None };
        let step = |raw: u64| match &ranks {
            Some(ranks) => u32::try_from(ranks.partition_point(|&known| known < raw)),
            None => u32::try_from(raw),
        };
        let range = |lower: u64, upper: u64| {
            let (lower, upper) = (step(lower).ok()?, step(upper).ok()?);
            LiveRange::new(lower, upper).ok()
        };
        for (index, &(lower, upper)) in self.steps.iter().enumerate() {
            self.buffers[index].live = range(lower, upper).expect("steps are in order, and fit once ranked");
            if ranks.is_some() {
                self.labels[index].original_steps = Some((lower, upper));
            }
        }
        for (index, pauses) in &self.pauses {
            let pauses = pauses.iter().map(|pause| Pause {
                steps: range(pause.lower, pause.upper).expect("inside the life, which fits"),
                window: pause.window.map(|(low, high)| Bytes::new(low)..Bytes::new(high)),
            });
            let mut pauses: Vec<Pause> = pauses.collect();
            pauses.sort_by_key(|pause| pause.steps);
            self.buffers[*index].pauses = pauses.into();
        }
    }

    fn step_ranks(&self) -> Vec<u64> {
        let lives = self.steps.iter().flat_map(|&(lower, upper)| [lower, upper]);
        let pauses = self.pauses.iter().flat_map(|(_, pauses)| pauses);
        let mut all: Vec<u64> = lives.chain(pauses.flat_map(|pause| [pause.lower, pause.upper])).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The buffer of each id.
    fn buffers_by_id(&self) -> Result<FxHashMap<&str, usize>, FormatError> {
        let mut numbers = FxHashMap::with_capacity_and_hasher(self.labels.len(), rustc_hash::FxBuildHasher);
        for (index, label) in self.labels.iter().enumerate() {
            if let Some(first) = numbers.insert(label.name.as_str(), index) {
                let name = quote_excerpt(&label.name);
                let reason = format!("the id `{name}` is taken already, in line {}", self.line(first));
                return Err(self.error_at(self.line(index), reason));
            }
        }
        Ok(numbers)
    }

    /// Pairs of a buffer and one that its cell names.
    fn parse_pairs(
        &self,
        lists: &[(usize, String)],
        numbers: &FxHashMap<&str, usize>,
        column: &str,
    ) -> Result<Vec<(BufferId, BufferId)>, FormatError> {
        let mut pairs = Vec::new();
        for (index, list) in lists {
            for id in list.split_ascii_whitespace() {
                let named = numbers.get(id).copied().or_else(|| numbers.get(unescape(id).as_str()).copied());
                let Some(named) = named else {
                    let reason =
                        format!("{column} names `{}`, which is no id of this file", quote_excerpt(id));
                    return Err(self.error_at(self.line(*index), reason));
                };
                pairs.push((BufferId::from_index(*index), BufferId::from_index(named)));
            }
        }
        Ok(pairs)
    }

    fn locate_error(&self, error: &InstanceError) -> FormatError {
        let Some(buffer) = error.faulty_buffer() else {
            return self.error_at(self.header_line, error.to_string());
        };
        let mut reason = error.to_string();
        let name = self.labels.get(buffer.index()).map_or("", |label| label.name.as_str());
        if name != buffer.to_string() {
            reason = format!("{reason} (buffer {buffer} is `{}`)", quote_excerpt(name));
        }
        self.error_at(self.line(buffer.index()), reason)
    }
}
