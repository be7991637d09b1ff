//! An explanation as a page: the answer, and the framework's placement beside the best plan.

use planlab_dsa::Plan;

use super::explained::Explained;
use crate::cli::ExplainArgs;
use crate::shell::exit::{Exit, Failure};
use crate::shell::output::print_note;
use crate::shell::target::Target;
use crate::verbs::page;

/// A page that may be asked for; its file is tried before the work.
pub(super) struct PageTarget(Option<(Target, String)>);

impl PageTarget {
    pub(super) fn open_page(args: &ExplainArgs) -> Result<Self, Failure> {
        let Some(path) = &args.output else { return Ok(Self(None)) };
        page::check_name(path)?;
        Ok(Self(Some((Target::open_file(path, [args.file.as_str()])?, path.display().to_string()))))
    }

    /// Writes the page with `answer` at its top, if there is one to write.
    pub(super) fn write_page(
        self,
        explained: &Explained<'_>,
        plan: Option<Plan>,
        answer: &str,
    ) -> Result<(), Failure> {
        let Some((target, path)) = self.0 else { return Ok(()) };
        let mut page =
            page::framework_page(explained.file, explained.trace, explained.framework).with_answer(answer);
        if let Some(plan) = plan {
            let verified = explained.trace.instance.verify(plan);
            let verified = verified.map_err(|violation| Failure::new(Exit::Invalid, violation))?;
            page = page.with_plan(&format!("{}'s plan", explained.best.planner), &verified);
            if !explained.best.status.is_lie() {
                page = page.with_bound(explained.best.bound);
            }
        }
        let bytes = page.to_html()?.into_bytes();
        target.write_all(&bytes)?;
        print_note(&format!("{path}: {} bytes", bytes.len()));
        Ok(())
    }
}
