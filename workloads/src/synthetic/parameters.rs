//! The parameters of a family: declaration, defaults and checks.

use planlab_dsa::InstanceError;

use crate::nearest::{did_you_mean, nearest};

/// The permitted values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number within these bounds, both included.
    Number(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A parameter of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The default value.
    pub default: &'static str,
    /// Its effect, with its unit.
    pub summary: &'static str,
    /// Its permitted values.
    pub kind: Kind,
}

/// The exact number of buffers.
pub(super) const N: Parameter = Parameter::from_number("n", "1000", (10, 10_000_000), "number of buffers");
/// The seed of the random numbers.
pub(super) const SEED: Parameter =
    Parameter::from_number("seed", "0", (0, u64::MAX), "start of the random numbers");

impl Parameter {
    pub(super) const fn from_number(
        name: &'static str,
        default: &'static str,
        (low, high): (u64, u64),
        summary: &'static str,
    ) -> Self {
        Self { name, default, summary, kind: Kind::Number(low, high) }
    }

    pub(super) const fn from_choices(
        name: &'static str,
        choices: &'static [&'static str],
        summary: &'static str,
    ) -> Self {
        Self { name, default: choices[0], summary, kind: Kind::Choice(choices) }
    }

    fn parse_value(&self, value: &str) -> Result<ParameterValue, ParameterError> {
        let (parsed, allowed) = match self.kind {
            Kind::Number(low, high) => {
                let number = value.parse().ok().filter(|number| (low..=high).contains(number));
                (number.map(ParameterValue::Number), format!("a whole number from {low} to {high}"))
            }
            Kind::Choice(words) => {
                let word = words.iter().find(|&&word| word == value);
                (word.map(|&word| ParameterValue::Choice(word)), format!("one of {}", words.join(", ")))
            }
        };
        let value = value.chars().take(60).collect();
        parsed.ok_or(ParameterError::BadValue { parameter: self.name, value, allowed })
    }
}

/// Why the instance does not exist.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// No family has this name.
    #[error("there is no family `{name}`{}", did_you_mean(nearest))]
    UnknownFamily { name: String, nearest: Vec<&'static str> },
    /// The family has no parameter with this name.
    #[error(
        "the family `{family}` has no parameter `{name}` (it has {}){}",
        parameters.join(", "),
        did_you_mean(nearest)
    )]
    UnknownParameter {
        family: &'static str,
        name: String,
        nearest: Vec<&'static str>,
        parameters: Vec<&'static str>,
    },
    /// A forbidden value for the parameter.
    #[error("{parameter}={value}: it must be {allowed}")]
    BadValue { parameter: &'static str, value: String, allowed: String },
    /// A parameter that is set more than once.
    #[error("the parameter `{parameter}` is set twice")]
    Twice { parameter: &'static str },
    /// A key that is not of the form `synthetic/<family>/.../n<N>/s<seed>`.
    #[error(
        "`{key}` is no key of a synthetic workload: synthetic/<family>[/<parameter>=<value>...]/n<N>/s<seed>"
    )]
    BadKey { key: String },
    /// The parameters give sizes whose sum is too large.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// The values of all parameters of a family.
///
/// # Panics
///
/// All methods that take a name panic if the family has no such parameter, or if its value is not of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Vec<(&'static str, ParameterValue)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ParameterValue {
    Number(u64),
    Choice(&'static str),
}

impl Values {
    pub(super) fn new(
        family: &'static str,
        parameters: &[Parameter],
        given: &[(&str, &str)],
    ) -> Result<Self, ParameterError> {
        for (name, _) in given {
            if !parameters.iter().any(|parameter| parameter.name == *name) {
                let parameters: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
                let nearest = nearest(name, parameters.iter().copied());
                let name = (*name).to_owned();
                return Err(ParameterError::UnknownParameter { family, name, nearest, parameters });
            }
        }
        let value = |parameter: &Parameter| {
            let mut all = given.iter().filter(|(name, _)| *name == parameter.name).map(|&(_, value)| value);
            let value = all.next().unwrap_or(parameter.default);
            match all.next() {
                Some(_) => Err(ParameterError::Twice { parameter: parameter.name }),
                None => Ok((parameter.name, parameter.parse_value(value)?)),
            }
        };
        parameters.iter().map(value).collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, name: &str) -> &ParameterValue {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.expect("a family reads its own parameters").1
    }

    /// The value of a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        match self.get(name) {
            ParameterValue::Number(number) => *number,
            ParameterValue::Choice(_) => panic!("`{name}` is a word"),
        }
    }

    /// The value of a number, as an index or a count.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).expect("counts are bounded")
    }

    /// The value of a number, as a step.
    #[must_use]
    pub fn steps(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("steps are bounded")
    }

    /// The value of a choice.
    #[must_use]
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            ParameterValue::Choice(word) => word,
            ParameterValue::Number(_) => panic!("`{name}` is a number"),
        }
    }

    /// `name=value` for each non-default parameter, except size and seed.
    pub(super) fn changed_settings(&self, parameters: &[Parameter]) -> Vec<String> {
        let mut settings = Vec::new();
        for parameter in parameters {
            let text = match self.get(parameter.name) {
                ParameterValue::Number(number) => number.to_string(),
                ParameterValue::Choice(word) => (*word).to_owned(),
            };
            if text != parameter.default && !["n", "seed"].contains(&parameter.name) {
                settings.push(format!("{}={text}", parameter.name));
            }
        }
        settings
    }
}
