//! Draws what a client does, from a seed.

#[path = "generator/batch.rs"]
mod batch;
#[path = "generator/copy.rs"]
mod copy;
#[path = "generator/long.rs"]
mod long;

use fastrand::Rng;

use crate::script::{Ending, Script, Turn, Way};
use crate::sql;
use crate::step::{FunctionCall, Step};

/// What a client may ask in a mode of pooling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Transactions over several messages.
    pub(crate) transactions: bool,
    /// Named statements, and the unnamed one beyond its Sync.
    pub(crate) kept_statements: bool,
    /// What a session keeps beyond its transaction (temporary tables, LISTEN, settings that are not reported, …).
    pub(crate) session_state: bool,
    /// A COPY may fail behind Syncs that were sent among its data. How many of them the server has answered cannot be
    /// told before it answers something else, so that outside session mode an answer that comes late may be lost.
    pub(crate) syncs_among_data: bool,
    /// RESET gives the value of the start-up packet.
    pub(crate) reset_to_start: bool,
    /// SQL takes statements of the protocol by their names, which the pooler has changed.
    pub(crate) names_in_sql: bool,
    /// Columns change under prepared statements. Outside session mode the pooler prepares them anew where PostgreSQL says
    /// for ever that they do not fit.
    pub(crate) stale_plans: bool,
}

/// The script of a seed.
pub(crate) fn script(seed: u64, features: Features) -> Script {
    let random = Rng::with_seed(seed);
    Generator { random, features, has_parameters: false, open: Vec::new() }.script()
}

struct Generator {
    random: Rng,
    features: Features,
    has_parameters: bool,
    /// What the statements' names stand for, as far as one may guess.
    open: Vec<(String, sql::Statement)>,
}

impl Generator {
    fn script(mut self) -> Script {
        let mut parameters = Vec::new();
        if self.chance(20) {
            for _ in 0..self.random.usize(1..3) {
                let (name, value) = self.pick(sql::START_PARAMETERS);
                // Of two values of one parameter, the protocol does not say which counts.
                if !parameters.iter().any(|(known, _)| known == name) {
                    parameters.push((name.to_owned(), value.to_owned()));
                }
            }
            self.has_parameters = true;
        }
        let mut turns = vec![Turn::new(vec![Step::Query(sql::tables())])];
        for _ in 0..self.random.usize(2..8) {
            turns.push(self.turn());
        }
        let ending = if self.chance(12) { self.death() } else { Ending::InStep };
        Script { parameters, turns, ending }
    }

    fn death(&mut self) -> Ending {
        let turn = self.turn();
        let bytes = self.random.usize(0..=turn.bytes().len());
        let way = self.pick(&[Way::Reset, Way::Reset, Way::End, Way::Terminate]);
        Ending::Death { turn, bytes, way }
    }

    fn turn(&mut self) -> Turn {
        let parts = match self.random.u8(0..100) {
            0..3 => self.random.usize(20..60),
            3..25 => self.random.usize(2..5),
            _ => 1,
        };
        let mut steps = Vec::new();
        for _ in 0..parts {
            self.part(&mut steps);
        }
        let length = steps.iter().map(|step| step.bytes().len()).sum::<usize>();
        let mut cuts = Vec::new();
        if self.chance(20) && length > 1 {
            for _ in 0..self.random.usize(1..4) {
                cuts.push(self.random.usize(1..length));
            }
            cuts.sort_unstable();
        }
        Turn { steps, cuts }
    }

    fn part(&mut self, steps: &mut Vec<Step>) {
        match self.random.u8(0..100) {
            0..38 => {
                let sql = self.simple();
                steps.push(Step::Query(sql));
            }
            38..72 => self.batch(steps),
            72..82 => self.copy_in(steps),
            82..90 => self.function_call(steps),
            90..93 => self.stray(steps),
            93 => self.long(steps),
            _ => {
                let sql = self.pick(sql::COPY_OUT);
                steps.push(Step::Query(sql.to_owned()));
            }
        }
    }

    /// SQL for a simple query (no COPY from the client: that needs data).
    fn simple(&mut self) -> String {
        let Features { transactions, session_state, names_in_sql, stale_plans, .. } = self.features;
        let list = match self.random.u8(0..100) {
            0..14 => sql::READS,
            14..22 => sql::WRITES,
            22..31 => sql::ERRORS,
            31..34 => sql::NOTHING,
            34..40 => sql::NOTICES,
            40..46 if transactions => sql::SEVERAL,
            46..66 if transactions => sql::TRANSACTIONS,
            46..66 => sql::TRANSACTION_ENDS,
            66..74 => sql::REPORTED,
            74..80 if transactions => sql::LOCAL_STATE,
            80..82 if names_in_sql => sql::NAMES_IN_SQL,
            80..95 if session_state => sql::SESSION_STATE,
            95..98 if stale_plans => sql::COLUMNS,
            95..100 => sql::TABLES,
            _ => sql::READS,
        };
        loop {
            let sql = self.pick(list);
            let resets = sql.contains("reset") || sql.contains("default") || sql == "discard all";
            if !(resets && self.has_parameters) || self.features.reset_to_start {
                return sql.to_owned();
            }
        }
    }

    fn function_call(&mut self, steps: &mut Vec<Step>) {
        let (function, arguments) = self.pick(sql::FUNCTIONS);
        let arguments = arguments.iter().map(|value| Some(value.as_bytes().to_vec())).collect();
        let call = FunctionCall { function, format: 0, arguments, result_format: self.random.u16(0..2) };
        if self.features.transactions && self.chance(30) {
            steps.push(Step::Query("begin".to_owned()));
        }
        steps.push(Step::FunctionCall(call));
    }

    /// Messages that mean nothing where they are.
    fn stray(&mut self, steps: &mut Vec<Step>) {
        steps.push(match self.random.u8(0..5) {
            0 => Step::CopyData(b"stray\n".to_vec()),
            1 => Step::CopyDone,
            2 => Step::CopyFail("stray".to_owned()),
            3 => Step::Flush,
            _ => Step::Sync,
        });
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.usize(0..list.len())]
    }
}
