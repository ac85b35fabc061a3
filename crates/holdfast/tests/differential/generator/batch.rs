//! Batches of the extended protocol.

use super::Generator;
use crate::sql::{self, Kind, Statement};
use crate::step::{Bind, Step};

/// OID of `int4`.
const INT4: u32 = 23;
/// OID of `text`.
const TEXT: u32 = 25;

impl Generator {
    /// A batch, most often with its Sync.
    pub(super) fn batch(&mut self, steps: &mut Vec<Step>) {
        for _ in 0..self.random.usize(1..4) {
            if self.chance(75) {
                self.unit(steps);
            } else {
                self.single(steps);
            }
            if self.chance(8) {
                steps.push(Step::Flush);
            }
        }
        match self.random.u8(0..100) {
            0..78 => steps.push(Step::Sync),
            78..84 => steps.extend([Step::Sync, Step::Sync]),
            84..95 => steps.push(Step::Flush),
            _ => {}
        }
        if !self.features.kept_statements && !matches!(steps.last(), Some(Step::Sync)) {
            steps.push(Step::Sync);
        }
    }

    /// What drivers send for one statement, with parts left out.
    fn unit(&mut self, steps: &mut Vec<Step>) {
        let (name, mut portal) = (self.statement_name(), self.portal_name());
        if !self.features.kept_statements || self.chance(80) {
            self.parse(&name, steps);
        }
        if self.chance(25) {
            steps.push(Step::DescribeStatement(name.clone()));
        }
        if self.chance(92) {
            self.bind(&portal, &name, steps);
        } else {
            portal = self.bound_portal_name();
        }
        if self.chance(50) {
            steps.push(Step::DescribePortal(portal.clone()));
        }
        for _ in 0..self.pick(&[0, 1, 1, 1, 1, 1, 2, 3]) {
            let max_rows = self.pick(&[0, 0, 0, 1, 2, 100]);
            steps.push(Step::Execute { portal: portal.clone(), max_rows });
        }
        if self.chance(12) {
            steps.push(Step::ClosePortal(portal));
        }
        if self.chance(12) {
            steps.push(Step::CloseStatement(name.clone()));
            self.open.retain(|(known, _)| *known != name);
        }
    }

    /// A message on its own, whatever its name stands for.
    fn single(&mut self, steps: &mut Vec<Step>) {
        let (name, portal) = (self.statement_name(), self.bound_portal_name());
        match self.random.u8(0..7) {
            0 => self.parse(&name, steps),
            1 if self.features.kept_statements => {
                let portal = self.portal_name();
                self.bind(&portal, &name, steps);
            }
            2 if self.features.kept_statements => steps.push(Step::DescribeStatement(name)),
            3 => steps.push(Step::DescribePortal(portal)),
            4 => steps.push(Step::Execute { portal, max_rows: self.pick(&[0, 1, 3]) }),
            5 => {
                self.open.retain(|(known, _)| *known != name);
                steps.push(Step::CloseStatement(name));
            }
            _ => steps.push(Step::ClosePortal(portal)),
        }
    }

    fn parse(&mut self, name: &str, steps: &mut Vec<Step>) {
        // (EXECUTE of a named SAVEPOINT outside of a transaction makes PostgreSQL end the session.)
        let list = if self.features.transactions && name.is_empty() && self.chance(25) {
            sql::TRANSACTION_STATEMENTS
        } else {
            sql::STATEMENTS
        };
        let statement = self.pick(list);
        let typed = self.chance(30);
        let types = |kind: &Kind| match kind {
            Kind::Int => INT4,
            Kind::Text => TEXT,
        };
        let types = if typed { statement.parameters.iter().map(types).collect() } else { Vec::new() };
        // A name that is taken stays what it is.
        if name.is_empty() || !self.open.iter().any(|(known, _)| known == name) {
            self.open.retain(|(known, _)| known != name);
            self.open.push((name.to_owned(), statement));
        }
        steps.push(Step::Parse { name: name.to_owned(), sql: statement.sql.to_owned(), types });
    }

    fn bind(&mut self, portal: &str, name: &str, steps: &mut Vec<Step>) {
        let known = self.open.iter().find(|(known, _)| known == name).map(|(_, statement)| *statement);
        let kinds = known.map_or(&[][..], |Statement { parameters, .. }| parameters);
        let mut formats: Vec<u16> = match self.random.u8(0..4) {
            0 => vec![0],
            1 => vec![1],
            2 => kinds.iter().map(|_| self.random.u16(0..2)).collect(),
            _ => Vec::new(),
        };
        if kinds.is_empty() && self.chance(90) {
            formats.clear();
        }
        let mut values = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let format =
                if formats.len() == 1 { formats[0] } else { formats.get(number).copied().unwrap_or(0) };
            values.push(self.value(*kind, format));
        }
        if self.chance(4) {
            values.push(Some(b"one too many".to_vec()));
        }
        let result_formats = match self.random.u8(0..8) {
            0..5 => Vec::new(),
            5 => vec![0],
            6 => vec![1],
            _ => vec![1, 0],
        };
        let (portal, statement) = (portal.to_owned(), name.to_owned());
        steps.push(Step::Bind(Bind { portal, statement, formats, values, result_formats }));
    }

    fn value(&mut self, kind: Kind, format: u16) -> Option<Vec<u8>> {
        if self.chance(6) {
            return None;
        }
        let number = self.pick(&[0_i32, 1, 3, 5, 7, 40, 200]);
        Some(match (kind, format) {
            // Sometimes it is no number.
            (Kind::Int, _) if self.chance(4) => b"x".to_vec(),
            (Kind::Int, 1) => number.to_be_bytes().to_vec(),
            (Kind::Int, _) => number.to_string().into_bytes(),
            (Kind::Text, _) => self.pick(&["", "a", "some text", "caf\u{e9}"]).as_bytes().to_vec(),
        })
    }

    fn statement_name(&mut self) -> String {
        if self.features.kept_statements && self.chance(55) {
            return self.pick(&["s1", "s2", "a rather long name of a statement"]).to_owned();
        }
        String::new()
    }

    /// For messages without a Bind before them. PostgreSQL 15 may crash if they name the portal without a name, in a
    /// transaction in which a simple query has failed.
    fn bound_portal_name(&mut self) -> String {
        self.pick(&["p1", "p2"]).to_owned()
    }

    fn portal_name(&mut self) -> String {
        self.pick(&["", "", "", "p1", "p2"]).to_owned()
    }
}
