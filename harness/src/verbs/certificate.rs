//! `bound --certificate` and `verify --certificate`: writes and checks proofs of infeasibility.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use planlab_dsa::{Budget, Bytes, Descriptor, Halt, Instance, Planner, Run, Scope, Stop, execute};
use planlab_solvers::placement::exact::{Certificate, CertificateError, Refutation, certify};
use serde_json::{Value, json};

use crate::inputs::{self, Source};
use crate::kinds::placement::Prover;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, merge_objects};
use crate::shell::quantity::format_memory;
use crate::shell::signals::cancel_token;
use crate::shell::target::Target;

/// The most buffers of a certificate.
pub(super) const MOST_BUFFERS: usize = 2000;
/// The most nodes of the search; such a proof takes about 100 MB.
const NODES: u64 = 2_000_000;

/// Proves that a capacity is infeasible and writes the proof; exit code 3 if there is no proof.
pub(crate) fn write_certificate(
    (trace, source): (&str, &Source),
    capacity: Option<u64>,
    file: &str,
    wall: Duration,
    output: Output,
) -> Verdict {
    output.refuse_stdout("certificate", file)?;
    let cancel = cancel_token();
    let target = Target::open_argument(file, [trace])?;
    let trace = inputs::open_trace(source)?;
    let instance = &trace.instance;
    let capacity = capacity.map_or(instance.load_without_in_place().bytes, Bytes::new);
    let certifier = Certifier { capacity, found: Mutex::default() };
    let outcome = execute(&certifier, instance, Budget { wall: Some(wall), cancel, ..Budget::default() }, 0);
    let seconds = outcome.elapsed.as_secs_f64();
    let found = certifier.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let head = json!({
        "version": JSON_VERSION, "workload": source.name, "buffers": instance.len(), "capacity": capacity,
        "seconds": seconds,
    });
    if let Some(Refutation::Proved(certificate)) = found {
        return save_certificate(&certificate, instance, (target, file), head, output);
    }
    let (status, text) = match (found, outcome.end) {
        (Some(Refutation::Feasible), _) => ("feasible", "there is a plan of at most"),
        (Some(Refutation::Unsupported), _) => {
            return Err(Failure::from_usage(
                "this trace cannot have a certificate: it has windows in use during a pause, several arenas, \
                 a pair kept apart with a buffer that is never active, more than 2000 buffers, or numbers too large",
            ));
        }
        (_, Err(error)) => return Err(Failure::new(Exit::Invalid, error)),
        (_, Ok(Stop::Cancelled)) => ("interrupted", "interrupted: no proof yet against"),
        (_, Ok(Stop::Deadline)) => ("unknown", "the time limit came: no proof against"),
        _ => ("unknown", "the nodes were used up: no proof against"),
    };
    let value = merge_objects(head, &json!({ "status": status }));
    let exit = if status == "interrupted" { Exit::Interrupted } else { Exit::Incomplete };
    output.print_result(&value, format!("{text} {}\n", format_memory(capacity.get())), exit)
}

/// Writes a certificate that the checker accepts; prints it if it cannot be written.
fn save_certificate(
    certificate: &Certificate,
    instance: &Instance,
    (target, file): (Target, &str),
    head: Value,
    output: Output,
) -> Verdict {
    let bound = certificate.check_proof(instance).map_err(|error| Failure::new(Exit::Invalid, error))?;
    let mut text = serde_json::to_string(certificate)?;
    text.push('\n');
    let written = target.write_all(text.as_bytes());
    if file == "-" {
        return written.map(|()| Exit::Complete);
    }
    let (capacity, steps) = (certificate.capacity, certificate.steps.len());
    let (scope, plans) = proved_of(instance);
    let object = json!({ "status": "infeasible", "bound": bound, "bound_scope": scope, "steps": steps });
    let (most, least) = (format_memory(capacity.get()), format_memory(bound.get()));
    let line = format!("no {plans} of at most {most}: bound {least}, {steps} steps");
    let (place, line) = match &written {
        Ok(()) => (json!({ "certificate": file }), format!("{line} in {file}\n")),
        Err(_) => (json!({ "certificate": certificate }), format!("{line}\n\n{text}")),
    };
    let told = output.print_either(&merge_objects(merge_objects(head, &object), &place), line);
    written.and(told).map(|()| Exit::Complete)
}

/// The plans that a certificate speaks of: it knows of no hand-overs.
fn proved_of(instance: &Instance) -> (Scope, &'static str) {
    match instance.in_place().is_empty() {
        true => (Scope::Any, "plan"),
        false => (Scope::NoHandOver, "plan without hand-overs"),
    }
}

/// Checks a certificate of a trace; exit code 4 if it proves nothing.
pub(crate) fn verify_certificate(source: &Source, file: &str, output: Output) -> Verdict {
    let trace = inputs::open_trace(source)?;
    let name = inputs::input_name(file);
    let certificate: Certificate =
        serde_json::from_str(&inputs::read_file_document(file)?).map_err(|error| {
            Failure::from_usage(format!("{name}: {error}")).in_file(name, u64::try_from(error.line()).ok())
        })?;
    let (capacity, steps) = (certificate.capacity, certificate.steps.len());
    let head = json!({ "version": JSON_VERSION, "capacity": capacity, "steps": steps });
    match certificate.check_proof(&trace.instance) {
        Ok(bound) => {
            let (scope, plans) = proved_of(&trace.instance);
            let object = json!({ "valid": true, "bound": bound, "bound_scope": scope });
            let (most, least) = (format_memory(capacity.get()), format_memory(bound.get()));
            let line = format!("valid: no {plans} of at most {most}, bound {least}, {steps} steps\n");
            output.print_result(&merge_objects(head, &object), line, Exit::Complete)
        }
        Err(error) => {
            let wrong = match &error {
                CertificateError::WrongStep { number, .. } => Some(*number),
                _ => None,
            };
            let object = json!({ "valid": false, "step": wrong, "message": error.to_string() });
            let line = format!("not valid: {error}\n");
            output.print_result(&merge_objects(head, &object), line, Exit::Invalid)
        }
    }
}

/// A planner that makes no plan and only looks for a proof.
struct Certifier {
    capacity: Bytes,
    found: Mutex<Option<Refutation>>,
}

impl Planner for Certifier {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "certificate".into(),
            summary: "a proof that a capacity is infeasible".into(),
            reference: "planlab_solvers::placement::exact",
            complexity: "exponential",
            ..Prover::default().descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let found = certify(instance, self.capacity, NODES, &mut |work| run.tick(work))?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(())
    }
}
