//! The times of a net's passes on a machine: from the roofline, or measured.

use std::collections::{BTreeMap, VecDeque};

use planlab_files::FormatError;

use super::machine::Machine;
use super::net::TrainingNet;
use super::parts::{Function, FunctionId, FunctionKind, Work};

impl Machine {
    /// The roofline times of a net.
    #[must_use]
    pub fn roofline_times(&self, net: &TrainingNet) -> Times {
        let slowdown = self.batch_slowdown(net.batch());
        let seconds = |work: fn(&Function) -> Work| {
            let pass = |function: &Function| match function.kind {
                FunctionKind::Convolution => self.seconds_of_work(work(function)) * slowdown,
                _ => self.seconds_of_work(work(function)),
            };
            net.functions().iter().map(pass).collect()
        };
        let (forward, backward) =
            (seconds(|function| function.forward), seconds(|function| function.backward));
        Times { forward, backward, accumulate: self.sum_times(net) }
    }

    /// The roofline times of adding two gradients, by map: two reads, one write.
    fn sum_times(&self, net: &TrainingNet) -> Vec<f64> {
        let sum = |bytes: u64| Work { flops: 0.0, bytes: 3.0 * bytes as f64, launches: 1 };
        net.maps().iter().map(|map| self.seconds_of_work(sum(map.bytes.get()))).collect()
    }
}

/// The time of each pass of each function in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    forward: Vec<f64>,
    backward: Vec<f64>,
    accumulate: Vec<f64>,
}

/// The longest time of a pass in seconds. Sums of such times are exact enough to compare schedules.
const LONGEST: f64 = 1e18;

/// Whether a number of seconds can be the time of a pass.
pub(crate) fn is_time(seconds: f64) -> bool {
    (0.0..=LONGEST).contains(&seconds)
}

/// Times that do not match the net.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimesError {
    /// The wrong number of times.
    #[error("{given} {what} times for {wanted}")]
    Count { what: &'static str, given: usize, wanted: usize },
    /// A time that is negative, longer than 1e18 seconds, or not a number.
    #[error("{what} time {index} is {value}, not a number of seconds from 0 to {LONGEST:e}")]
    Bad { what: &'static str, index: usize, value: String },
}

impl Times {
    /// Measured times: of the forward and the backward pass by function, of adding two gradients by map.
    ///
    /// # Errors
    ///
    /// [`TimesError`] if a number is missing or is not a valid time.
    pub fn new(
        net: &TrainingNet,
        forward: Vec<f64>,
        backward: Vec<f64>,
        accumulate: Vec<f64>,
    ) -> Result<Self, TimesError> {
        let (functions, maps) = (net.functions().len(), net.maps().len());
        let lists = [
            ("forward", &forward, functions),
            ("backward", &backward, functions),
            ("sum", &accumulate, maps),
        ];
        for (what, list, wanted) in lists {
            if list.len() != wanted {
                return Err(TimesError::Count { what, given: list.len(), wanted });
            }
            if let Some(index) = list.iter().position(|&time| !is_time(time)) {
                return Err(TimesError::Bad { what, index, value: format!("{:?}", list[index]) });
            }
        }
        Ok(Self { forward, backward, accumulate })
    }

    /// Like [`Times::new`], with the times of sums from the machine.
    pub fn from_measured(
        machine: &Machine,
        net: &TrainingNet,
        forward: Vec<f64>,
        backward: Vec<f64>,
    ) -> Result<Self, TimesError> {
        Self::new(net, forward, backward, machine.sum_times(net))
    }

    /// Reads measured times: a header `function,forward,backward`, then the name of each function with the seconds of
    /// its passes, in any order. Empty lines and lines that start with `#` are ignored. If several functions have one
    /// name, the rows belong to them in order. The times of sums come from the machine. Errors name the file `file`.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line: an invalid header or row, an unknown function, an invalid time; at the last line,
    /// a function without a row.
    pub fn from_csv(
        machine: &Machine,
        net: &TrainingNet,
        file: &str,
        text: &str,
    ) -> Result<Self, FormatError> {
        let mut rows = Rows::new(net);
        let mut last = 1;
        let mut is_header = true;
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            last = line;
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let read =
                if std::mem::take(&mut is_header) { check_header(content) } else { rows.read_row(content) };
            read.map_err(|reason| FormatError::new(file, line, reason))?;
        }
        let (forward, backward) =
            rows.finish_times().map_err(|reason| FormatError::new(file, last, reason))?;
        Self::from_measured(machine, net, forward, backward)
            .map_err(|error| FormatError::new(file, last, error.to_string()))
    }

    /// The forward passes, by function.
    #[must_use]
    pub fn forward(&self) -> &[f64] {
        &self.forward
    }

    /// The backward passes, by function.
    #[must_use]
    pub fn backward(&self) -> &[f64] {
        &self.backward
    }

    /// The sums of two gradients, by map.
    #[must_use]
    pub fn accumulate_times(&self) -> &[f64] {
        &self.accumulate
    }

    /// Multiplies the times of both passes of a function by a factor.
    pub(super) fn scale_function(&mut self, id: FunctionId, factor: f64) {
        self.forward[id.index()] *= factor;
        self.backward[id.index()] *= factor;
    }
}

const HEADER: [&str; 3] = ["function", "forward", "backward"];

fn check_header(content: &str) -> Result<(), String> {
    if content.split(',').map(str::trim).eq(HEADER) {
        return Ok(());
    }
    Err(format!("the header is `{content}`, not `{}`", HEADER.join(",")))
}

/// The rows of a file of times that is being read.
struct Rows<'n> {
    net: &'n TrainingNet,
    /// For each name, the functions without a row so far.
    open: BTreeMap<&'n str, VecDeque<usize>>,
    seconds: Vec<Option<(f64, f64)>>,
}

impl<'n> Rows<'n> {
    fn new(net: &'n TrainingNet) -> Self {
        let mut open: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
        for (index, function) in net.functions().iter().enumerate() {
            open.entry(&function.name[..]).or_default().push_back(index);
        }
        Self { net, open, seconds: vec![None; net.functions().len()] }
    }

    fn read_row(&mut self, content: &str) -> Result<(), String> {
        // A name may contain commas.
        let mut cells = content.rsplitn(3, ',').map(str::trim);
        let (Some(backward), Some(forward), Some(name)) = (cells.next(), cells.next(), cells.next()) else {
            return Err(format!("a row has three cells: {}", HEADER.join(", ")));
        };
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        let open = self.open.get_mut(name).ok_or_else(|| format!("the net has no function `{name}`"))?;
        let function = open.pop_front().ok_or_else(|| format!("function `{name}` has its times already"))?;
        self.seconds[function] =
            Some((parse_seconds("forward", forward)?, parse_seconds("backward", backward)?));
        Ok(())
    }

    fn finish_times(self) -> Result<(Vec<f64>, Vec<f64>), String> {
        let missing = |index: usize| format!("function `{}` has no times", self.net.functions()[index].name);
        if let Some(index) = self.seconds.iter().position(Option::is_none) {
            return Err(missing(index));
        }
        Ok(self.seconds.into_iter().flatten().unzip())
    }
}

fn parse_seconds(what: &str, cell: &str) -> Result<f64, String> {
    let seconds = cell.parse::<f64>().ok().filter(|&seconds| is_time(seconds));
    seconds
        .ok_or_else(|| format!("the {what} time is `{cell}`, not a number of seconds from 0 to {LONGEST:e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::training::shortcut_net;

    const GOOD: &str =
        "# measured\nfunction,forward,backward\nloss,5,50\nconv,1,10\nrelu,2,20\n\nconv2,3,30\nadd, 4, 0\n";

    fn read(text: &str) -> Result<Times, FormatError> {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        Times::from_csv(&machine, &shortcut_net(), "t.csv", text)
    }

    #[test]
    fn a_file_gives_each_function_its_times() {
        let times = read(GOOD).expect("good");
        assert_eq!(times.forward(), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(times.backward(), [10.0, 20.0, 30.0, 0.0, 50.0]);
        assert_eq!(times.accumulate_times()[1], 6e-6 + 3.0 * 256.0 / 720e9);
    }

    #[test]
    fn a_bad_file_is_refused_with_line_and_reason() {
        let refusal = |text: &str| read(text).expect_err("refused").to_string();
        for (from, to, reason) in [
            ("loss", "lost", "3: the net has no function `lost`"),
            ("conv2,", "conv,", "7: function `conv` has its times already"),
            ("relu,2,20\n", "", "7: function `relu` has no times"),
            ("2,20", "2,-1", "5: the backward time is `-1`, not a number of seconds from 0 to 1e18"),
            ("2,20", "NaN,20", "5: the forward time is `NaN`, not a number of seconds from 0 to 1e18"),
            ("2,20", "2,1e19", "5: the backward time is `1e19`, not a number of seconds from 0 to 1e18"),
            ("2,20", "20", "5: a row has three cells: function, forward, backward"),
        ] {
            assert_eq!(refusal(&GOOD.replace(from, to)), format!("t.csv:{reason}"));
        }
        let text = refusal(&GOOD.replace("function,forward", "name,forward"));
        assert_eq!(text, "t.csv:2: the header is `name,forward,backward`, not `function,forward,backward`");
        assert_eq!(refusal(""), "t.csv:1: function `conv` has no times");
    }

    #[test]
    fn functions_of_one_name_take_their_rows_in_turn() {
        let net = shortcut_net();
        let mut functions = net.functions().to_vec();
        functions[2].name = "conv".to_owned();
        let net = TrainingNet::new("twins", 1, 0, net.maps().to_vec(), functions).expect("a net");
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let text = GOOD.replace("conv2", "conv");
        let times = Times::from_csv(&machine, &net, "t.csv", &text).expect("good");
        assert_eq!((times.forward()[0], times.forward()[2]), (1.0, 3.0));
    }

    #[test]
    fn large_batches_lengthen_convolutions_alone() {
        let net = shortcut_net();
        let net =
            TrainingNet::new("n", 256, 0, net.maps().to_vec(), net.functions().to_vec()).expect("a net");
        let even = Machine::built_in("x86-pcie3").expect("built in");
        let slow = Machine { large_batch_slowdown: 1.25, ..even.clone() };
        let ratio = |index: usize| {
            slow.roofline_times(&net).forward()[index] / even.roofline_times(&net).forward()[index]
        };
        assert_eq!([0, 1, 2].map(ratio), [1.25, 1.0, 1.25]);
    }
}
