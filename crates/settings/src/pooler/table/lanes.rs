use super::super::lanes::MOST_GUARANTEED_PERCENT;
use super::super::model::Lane;
use super::{Kind, Setting, field};

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<Lane>] = &[
    Setting::new("application_name", Kind::List, "", field!(Lane, application_name), "Patterns of which a client's `application_name` must meet one; `*` is any text. None: any name. A SET moves the client with its next request.").own(),
    Setting::new("user", Kind::List, "", field!(Lane, user), "The same of the user that it has logged in as.").own(),
    Setting::new("database", Kind::List, "", field!(Lane, database), "The same of the database that it has asked for.").own(),
    Setting::new("weight", Kind::Integer { minimum: 1, maximum: 1_000 }, "1", field!(Lane, weight), "Turns of this lane, relative to the others that wait in the same pool.").own(),
    Setting::new("share_percent", Kind::Integer { minimum: 0, maximum: MOST_GUARANTEED_PERCENT as u64 }, "0", field!(Lane, share_percent), "Of a hundred of the pool's servers, so many go to this lane first, while it waits. All lanes together at most 90.").own(),
];
