//! The child's side of `query`: the hidden verb `run-query`.

use std::path::PathBuf;

use planlab_results::queries::Tables;
use serde::{Deserialize, Serialize};

use super::shown;
use crate::process::{limit_address_space, receive_request, send_reply};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::text::TableForm;

/// A question to a folder of results, and the form of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The id of the asking process, which the child does not outlive.
    pub(super) parent: u32,
    pub(super) results: PathBuf,
    pub(super) sql: String,
    pub(super) csv: bool,
    pub(super) json: bool,
    pub(super) tables: Option<TableForm>,
    /// Address-space limit in bytes, if no cgroup enforces the memory limit.
    pub(super) address_space: Option<u64>,
}

/// Why a question cannot be answered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    reason: String,
    file: Option<String>,
    line: Option<u64>,
    is_incomplete: bool,
}

/// The first line of a child, before the text of the answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Head {
    Refused(Refusal),
    Answer,
}

/// Reads a request from stdin and serves it: one line says whether there is an answer, whose text follows.
pub(crate) fn serve() -> Verdict {
    let (request, mut channel) = receive_request(|request: &Request| request.parent)?;
    limit_address_space(request.address_space)?;
    let answer = match Tables::open(&request.results).and_then(|tables| tables.query_sql(&request.sql)) {
        Ok(answer) => answer,
        Err(error) => {
            let failure = Failure::from(error);
            let exit = failure.exit;
            send_reply(&mut channel, &Head::Refused(failure.into()))?;
            return Ok(exit);
        }
    };
    send_reply(&mut channel, &Head::Answer)?;
    // From now on, what is printed goes to the parent.
    rustix::stdio::dup2_stdout(&channel)?;
    let output = Output { json: request.json, tables: request.tables };
    shown::show_answer(&answer, request.csv, output)?;
    Ok(Exit::Complete)
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let object = failure.as_json();
        Self {
            reason: failure.full_message(),
            file: object["file"].as_str().map(str::to_owned),
            line: object["line"].as_u64(),
            is_incomplete: failure.exit == Exit::Incomplete,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let exit = if refusal.is_incomplete { Exit::Incomplete } else { Exit::Usage };
        let failure = Self::new(exit, refusal.reason);
        match refusal.file {
            Some(file) => failure.in_file(file, refusal.line),
            None => failure,
        }
    }
}
