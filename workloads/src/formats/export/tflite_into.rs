//! Writes an offline plan into the model that it was made for, and into no other.

use planlab_dsa::{BufferId, InPlace, Plan};
use rustc_hash::FxHashMap;

use super::tflite_micro::{with_new_root, write_offline_plan};
use crate::formats::flatbuffer::Broken;
use crate::formats::import::{self, Imported};
use crate::formats::{ExportError, FormatError, InputLimits, ReadOptions, Trace};

/// Tensors begin at multiples of this: `MicroArenaBufferAlignment` of the runtime.
const TENSOR_ALIGNMENT: u64 = 16;

/// Why a plan does not go into a model.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntoModelError {
    /// The file is no model.
    #[error(transparent)]
    Model(#[from] FormatError),
    /// The plan has no form as an offline plan.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The plan is of another trace, or the runtime cannot follow it.
    #[error("{file}: the plan is not of this model: {reason}")]
    Other { file: String, reason: String },
}

/// A model with the plan of a trace among its metadata, in place of an offline plan that it has; what was in the file
/// stays as it was, byte by byte. The trace has the model's tensors by their names (`12:conv1`), in any order, and the
/// offsets are checked against the model itself. `file` is what errors call the model.
///
/// # Errors
///
/// [`IntoModelError`]: the byte at which the file is no model, or what the plan lacks for it.
///
/// # Panics
///
/// If the plan does not belong to the trace.
pub fn with_offline_plan(
    file: &str,
    model: &[u8],
    trace: &Trace,
    plan: &Plan,
    limits: InputLimits,
) -> Result<Vec<u8>, IntoModelError> {
    let reader = import::reader("tflite");
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let imported = import::read(file, model, reader, &options)?;
    let other = |reason| IntoModelError::Other { file: file.to_owned(), reason };
    let own = only_part(imported).map_err(other)?;
    let plan = plan_of(&own, trace, plan).map_err(other)?;
    let words = write_offline_plan(&own, &plan)?;
    let broken = |Broken { at, reason }| FormatError::at_byte(file, at, reason);
    Ok(with_new_root(model, &words).map_err(broken)?)
}

fn only_part(imported: Imported) -> Result<Trace, String> {
    let count = imported.parts.len();
    match <[_; 1]>::try_from(imported.parts) {
        Ok([part]) => Ok(part.trace),
        Err(_) => Err(format!("the model has {count} subgraphs, and the plan is of one")),
    }
}

/// The plan with the model's buffers, verified.
fn plan_of(own: &Trace, trace: &Trace, plan: &Plan) -> Result<Plan, String> {
    let ids = own.instance.ids().zip(&own.labels.buffers);
    let ids: FxHashMap<&str, BufferId> = ids.map(|(id, label)| (label.name.as_str(), id)).collect();
    let mut offsets = vec![None; own.instance.len()];
    let mut own_id = Vec::with_capacity(plan.offsets.len());
    for (label, &offset) in trace.labels.buffers.iter().zip(&plan.offsets) {
        let id = ids.get(label.name.as_str()).copied();
        let id = id.ok_or_else(|| format!("buffer `{}` is no tensor that it places", label.name))?;
        if offsets[id.index()].replace(offset).is_some() {
            return Err(format!("tensor `{}` has two offsets", label.name));
        }
        if !offset.get().is_multiple_of(TENSOR_ALIGNMENT) {
            return Err(format!(
                "tensor `{}` is at offset {offset}, and the runtime takes multiples of {TENSOR_ALIGNMENT} only: \
                 plan with --align {TENSOR_ALIGNMENT}",
                label.name
            ));
        }
        own_id.push(id);
    }
    let named = offsets.iter().zip(&own.labels.buffers);
    let named =
        named.map(|(offset, label)| offset.ok_or_else(|| format!("tensor `{}` has no offset", label.name)));
    let offsets = named.collect::<Result<Vec<_>, _>>()?;
    let pair =
        |pair: &InPlace| InPlace { input: own_id[pair.input.index()], output: own_id[pair.output.index()] };
    let plan = Plan { offsets, in_place: plan.in_place.iter().map(pair).collect() };
    own.instance.verify(plan.clone()).map_err(|violation| violation.to_string())?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::formats::export::tflite_micro::tests::{model, plan_in};
    use crate::formats::read_trace;
    use crate::formats::testing::trace;

    fn into(model: &[u8], trace: &Trace, offsets: &[u64]) -> Result<Vec<u8>, String> {
        let plan = Plan::from_offsets(offsets.iter().copied().map(Offset::new).collect::<Vec<_>>());
        let with = with_offline_plan("m.tflite", model, trace, &plan, InputLimits::default());
        with.map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_goes_into_its_own_model_only() {
        let own = read_trace("m.tflite", &model(), &ReadOptions::default()).expect("a model");
        let name = own.labels.buffers[0].name.clone();
        assert_eq!(plan_in(&into(&model(), &own, &[48]).expect("its own")), [1, 1, 1, 48]);
        let refused = |text: &str, offsets: &[u64]| into(&model(), &trace(text), offsets).expect_err(text);
        let not = "m.tflite: the plan is not of this model: ";
        let error = refused("id,lower,upper,size\na,0,1,64\n", &[0]);
        assert_eq!(error, format!("{not}buffer `a` is no tensor that it places"));
        assert_eq!(refused("id,lower,upper,size\n", &[]), format!("{not}tensor `{name}` has no offset"));
        let one = format!("id,lower,upper,size\n{name},0,1,64\n");
        let reason = "is at offset 8, and the runtime takes multiples of 16 only: plan with --align 16";
        assert!(refused(&one, &[8]).ends_with(reason));
        let mut two = trace(&format!("{one}again,1,2,64\n"));
        two.labels.buffers[1].name.clone_from(&name);
        let error = into(&model(), &two, &[0, 64]).expect_err("twice");
        assert_eq!(error, format!("{not}tensor `{name}` has two offsets"));
        // A trace that says less than the model is judged by the model.
        assert_eq!(plan_in(&into(&model(), &trace(&one), &[16]).expect("the same tensor")), [1, 1, 1, 16]);
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let error = into(b"id,lower,upper", &trace("id,lower,upper,size\n"), &[]).expect_err("no model");
        assert_eq!(error, "m.tflite: byte 4: there is no identifier TFL3");
    }
}
