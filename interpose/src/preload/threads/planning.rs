//! How rounds are planned: by the launcher, or in a thread that is not watched itself.

use super::key;
use crate::planning::Planning;
use crate::preload::settings::Settings;

pub(crate) fn planning(settings: &'static Settings) -> Planning {
    Planning {
        least_load: settings.machine.least_load,
        patience: settings.patience,
        prepare: key::hand_through_all,
        launcher: settings.launcher.as_deref(),
    }
}
