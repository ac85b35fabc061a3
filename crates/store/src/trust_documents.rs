//! The signed documents that verifiers keep.

use crate::changes::{Change, note};
use crate::session::values;
use crate::{Store, StoreError};

/// Which document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The keys that sign tokens and contracts.
    KeyRing,
    /// Revoked clients.
    Revocations,
}

impl Document {
    fn number(self) -> i16 {
        match self {
            Self::KeyRing => 1,
            Self::Revocations => 2,
        }
    }

    fn change(self) -> Change {
        match self {
            Self::KeyRing => Change::KeyRing,
            Self::Revocations => Change::Revocations,
        }
    }
}

impl Store {
    /// The newest of its kind, with its number.
    ///
    /// # Errors
    /// The database's.
    pub async fn trust_document(&self, document: Document) -> Result<Option<(u64, String)>, StoreError> {
        let network = self.network.0;
        self.pool
            .run("reading a signed document", move |session| {
                Box::pin(async move {
                    let sql = "SELECT d.number, d.body FROM trust_document d JOIN network n USING (network)
                        WHERE n.name = $1 AND d.kind = $2";
                    let values = values![&network[..] => BYTEA, document.number() => INT2];
                    let row = session.row(sql, &values).await?;
                    Ok(row.map(|row| (u64::try_from(row.get::<_, i64>(0)).unwrap_or_default(), row.get(1))))
                })
            })
            .await
    }

    /// Puts a document in the place of an older one. `false`: what is there has this number, or a higher one.
    ///
    /// # Errors
    /// The database's.
    pub async fn put_trust_document(
        &self,
        document: Document,
        number: u64,
        body: String,
    ) -> Result<bool, StoreError> {
        let network = self.network.0;
        let number = i64::try_from(number)
            .map_err(|_| StoreError::Invalid { what: "a document's number is too high" })?;
        self.pool
            .run("publishing a signed document", move |session| {
                Box::pin(async move {
                    let sql = "INSERT INTO trust_document AS d (network, kind, number, body)
                        SELECT network, $2, $3, $4 FROM network WHERE name = $1
                        ON CONFLICT (network, kind) DO UPDATE SET number = excluded.number, body = excluded.body,
                            signed_at = now() WHERE d.number < excluded.number";
                    let values = values![
                        &network[..] => BYTEA,
                        document.number() => INT2,
                        number => INT8,
                        body => TEXT,
                    ];
                    session.begin().await?;
                    let is_newer = session.execute(sql, &values).await? == 1;
                    if is_newer {
                        note(session, &network, document.change(), None).await?;
                    }
                    session.commit().await?;
                    Ok(is_newer)
                })
            })
            .await
    }
}
