//! COPY from the client, by both protocols, well and badly ended.

use super::{Features, Generator};
use crate::sql;
use crate::step::{Bind, Step};

/// The statement, if it is named, and the portal of each COPY from the client.
const COPYING: &str = "copying";

impl Generator {
    /// A COPY and its data. While the server may be reading data, nothing but data, Flush and Sync is sent: anything
    /// else would end the session.
    pub(super) fn copy_in(&mut self, steps: &mut Vec<Step>) {
        if self.chance(25) {
            return self.with_early_sync(steps);
        }
        if self.chance(50) {
            let list =
                if self.features.transactions && self.chance(30) { sql::COPY_IN_AMONG } else { sql::COPY_IN };
            let sql = self.pick(list);
            steps.push(Step::Query(sql.to_owned()));
            for _ in 0..sql.matches("from stdin").count() {
                self.data(steps);
            }
            return;
        }
        let sql = self.pick(sql::COPY_IN).to_owned();
        self.begin_extended(sql, steps);
        if self.chance(30) {
            steps.push(Step::Flush);
        }
        self.data(steps);
        // Now and then the batch goes on in the next turn.
        if self.chance(85) {
            steps.push(Step::Sync);
        }
    }

    /// A COPY with Syncs that the server ignores while it lasts. If it fails, and nobody can tell how many, the pooler
    /// gives the server up at the end of the transaction, and so what the session keeps: outside session mode none fails
    /// where that would show.
    fn with_early_sync(&mut self, steps: &mut Vec<Step>) {
        let Features { syncs_among_data, session_state, .. } = self.features;
        let may_fail = syncs_among_data || !session_state;
        let all = ["copy v%k from stdin", "copy v%k from stdin", "copy t%k (id) from stdin"];
        let sql = if may_fail { self.pick(&all) } else { all[0] }.to_owned();
        let extended = self.chance(50);
        if extended {
            self.begin_extended(sql, steps);
        } else {
            steps.push(Step::Query(sql));
        }
        for _ in 0..self.random.usize(1..4) {
            steps.push(Step::Sync);
            if syncs_among_data {
                steps.push(Step::CopyData(self.pick(sql::COPY_DATA).to_vec()));
            }
        }
        if may_fail {
            self.data(steps);
        } else {
            steps.extend([Step::CopyData(b"a line\nand another\n".to_vec()), Step::CopyDone]);
        }
        // Without it, what follows would be skipped if all others were ignored, and nobody could tell.
        if extended {
            steps.push(Step::Sync);
        }
    }

    /// Up to the Execute. The names of statement and portal are used for nothing else, since whoever executes them has
    /// to send data.
    fn begin_extended(&mut self, sql: String, steps: &mut Vec<Step>) {
        let name = if self.features.kept_statements { COPYING } else { "" };
        if self.features.kept_statements {
            steps.push(Step::CloseStatement(name.to_owned()));
        }
        steps.push(Step::Parse { name: name.to_owned(), sql, types: Vec::new() });
        let bind = Bind {
            portal: COPYING.to_owned(),
            statement: name.to_owned(),
            formats: Vec::new(),
            values: Vec::new(),
            result_formats: Vec::new(),
        };
        steps.push(Step::Bind(bind));
        if self.chance(30) {
            steps.push(Step::DescribePortal(COPYING.to_owned()));
        }
        steps.push(Step::Execute { portal: COPYING.to_owned(), max_rows: 0 });
    }

    fn data(&mut self, steps: &mut Vec<Step>) {
        for _ in 0..self.random.usize(0..5) {
            let step = match self.random.u8(0..20) {
                0 => Step::Flush,
                2 => Step::CopyData(vec![b'8'; 9_000]),
                _ => Step::CopyData(self.pick(sql::COPY_DATA).to_vec()),
            };
            steps.push(step);
        }
        steps.push(if self.chance(75) { Step::CopyDone } else { Step::CopyFail("on purpose".to_owned()) });
        if self.chance(8) {
            steps.push(Step::CopyData(b"late\n".to_vec()));
        }
    }
}
