//! This pooler's own backends: everything that counts until it is really gone.

use overload::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What counts, by how well it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    /// Logins under way.
    attempts: usize,
    /// By process id; whether the others know that it is ours.
    live: BTreeMap<i32, bool>,
    /// Of servers that have told no process id.
    nameless: usize,
    /// Connections that have ended while the process may go on, and since when.
    doubtful: Vec<Doubtful>,
    /// Registered, and gone.
    gone: BTreeSet<i32>,
}

#[derive(Clone, Copy, Debug)]
struct Doubtful {
    /// None: it had not said yet.
    process_id: Option<i32>,
    since: Moment,
}

impl Servers {
    pub(crate) fn count(&self) -> usize {
        self.attempts + self.standing() + self.doubtful.len()
    }

    /// Without those that log in or may be gone.
    pub(crate) fn standing(&self) -> usize {
        self.live.len() + self.nameless
    }

    pub(crate) const fn attempts(&self) -> usize {
        self.attempts
    }

    pub(crate) fn doubtful(&self) -> usize {
        self.doubtful.len()
    }

    pub(crate) fn began(&mut self) {
        self.attempts += 1;
    }

    pub(crate) fn opened(&mut self, process_id: i32) {
        self.attempts = self.attempts.saturating_sub(1);
        if process_id <= 0 || self.live.insert(process_id, false).is_some() {
            self.nameless += 1;
        }
    }

    pub(crate) fn failed(&mut self, now: Moment, may_live: bool) {
        self.attempts = self.attempts.saturating_sub(1);
        if may_live {
            self.doubtful.push(Doubtful { process_id: None, since: now });
        }
    }

    pub(crate) fn ended(&mut self, now: Moment, process_id: i32, is_gone: bool) {
        match self.live.remove(&process_id) {
            Some(true) if is_gone => {
                self.gone.insert(process_id);
            }
            Some(false) if is_gone => {}
            Some(_) => self.doubtful.push(Doubtful { process_id: Some(process_id), since: now }),
            None => {
                self.nameless = self.nameless.saturating_sub(1);
                if !is_gone {
                    self.doubtful.push(Doubtful { process_id: None, since: now });
                }
            }
        }
    }

    /// Something is to be told to the others, or asked.
    pub(crate) fn has_news(&self) -> bool {
        !self.doubtful.is_empty() || !self.gone.is_empty() || self.live.values().any(|known| !known)
    }

    pub(crate) fn unregistered(&self) -> Vec<i32> {
        self.live.iter().filter(|(_, known)| !**known).map(|(&process_id, _)| process_id).collect()
    }

    pub(crate) fn take_gone(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.gone).into_iter().filter(|gone| !self.live.contains_key(gone)).collect()
    }

    pub(crate) fn asked_after(&self) -> Vec<i32> {
        self.doubtful.iter().filter_map(|doubtful| doubtful.process_id).collect()
    }

    pub(crate) fn registered(&mut self, process_ids: &[i32]) {
        for process_id in process_ids {
            if let Some(known) = self.live.get_mut(process_id) {
                *known = true;
            } else if !self.doubtful.iter().any(|doubtful| doubtful.process_id == Some(*process_id)) {
                // It has gone meanwhile.
                self.gone.insert(*process_id);
            }
        }
    }

    /// Nobody knows of ours any more: the session that said so is gone.
    pub(crate) fn forgotten(&mut self) {
        self.live.values_mut().for_each(|known| *known = false);
        self.gone.clear();
    }

    /// A look that was begun at `asked_at` has seen these of the doubtful. One without a process id is believed to be among
    /// what is seen, or gone, once `settle` has passed.
    pub(crate) fn looked(&mut self, asked_at: Moment, present: &[i32], settle: Duration) {
        let gone = &mut self.gone;
        self.doubtful.retain(|doubtful| {
            let stays = match doubtful.process_id {
                Some(process_id) => doubtful.since >= asked_at || present.contains(&process_id),
                None => doubtful.since + settle > asked_at,
            };
            if let Some(process_id) = doubtful.process_id.filter(|_| !stays) {
                gone.insert(process_id);
            }
            stays
        });
    }

    /// This backend is counted here already.
    pub(crate) fn is_ours(&self, process_id: i32) -> bool {
        self.live.contains_key(&process_id)
            || self.doubtful.iter().any(|doubtful| doubtful.process_id == Some(process_id))
    }
}
