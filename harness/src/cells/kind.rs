//! What a kind of cell says of itself.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::CancelToken;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shell::exit::Failure;

/// The time limit of a cell without one.
pub(crate) const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A kind of cell. Its child reads a source once and answers one question after another about it.
pub(crate) trait Kind {
    /// The hidden verb of the child.
    const VERB: &'static str;
    /// How long a child has for a last answer between TERM and KILL. Without any it gets KILL alone.
    const GRACE: Duration = Duration::ZERO;

    /// Where the problem comes from.
    type Source: Serialize + DeserializeOwned;
    /// The problem, as the child has read it.
    type Problem;
    /// The question of one cell.
    type Asked: Serialize + DeserializeOwned;
    /// The answer to it.
    type Found: Serialize + DeserializeOwned;
    /// What the mailbox of a killed child holds.
    type Kept: Default;

    /// Reads the problem in the child.
    fn open(source: &Self::Source) -> Result<Self::Problem, Failure>;

    /// Answers a question in the child. An error ends the child, whose exit code then is the answer.
    fn perform(
        problem: &Self::Problem,
        asked: &Self::Asked,
        context: CellContext<'_>,
    ) -> Result<Self::Found, Failure>;

    /// How long the child may take from its start or the previous answer until it calls [`CellContext::begin`]. A kind that
    /// never calls it returns the whole limit of the cell here.
    fn limit_to_begin(asked: &Self::Asked) -> Duration;

    /// How long the child may take from [`CellContext::begin`] to its answer.
    fn limit_from_begin(_source: &Self::Source, _asked: &Self::Asked) -> Duration {
        FOREVER
    }

    /// Reads what the child has put into its mailbox.
    fn kept(_source: &Self::Source, _mailbox: &Path) -> Self::Kept {
        Self::Kept::default()
    }

    /// Changes the command of the child before it starts: its environment, for example.
    fn prepare(_asked: &Self::Asked, _command: &mut Command) {}

    /// Whether the child starts programs that may outlive it.
    fn leaves_orphans(_asked: &Self::Asked) -> bool {
        false
    }
}

/// What a child receives for a cell beside the problem and the question.
pub(crate) struct CellContext<'a> {
    /// Names the files of its mailbox. The folder around them is the child's own.
    pub(crate) mailbox: &'a Path,
    pub(crate) cancel: &'a CancelToken,
    /// Reports that a run begins: [`Kind::limit_from_begin`] counts from here.
    pub(crate) begin: &'a mut dyn FnMut() -> io::Result<()>,
}
