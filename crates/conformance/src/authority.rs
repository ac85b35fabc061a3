//! The keys of the network that is checked.

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clock::unix_ms;
use std::path::Path;
use trust::{
    AccountId, ClientClaims, ClientId, ContractClaims, ContractId, Identity, NetworkId, Role, TokenKey,
};

/// What signs for the network: its name, and the key of tokens and contracts, which the relay's key ring must hold.
pub struct Authority {
    /// The network's name.
    pub network: NetworkId,
    /// The key of tokens and contracts.
    pub token_key: TokenKey,
}

/// A client that was made for a check.
pub(crate) struct Member {
    pub(crate) identity: Identity,
    pub(crate) client: ClientId,
    pub(crate) role: Role,
    pub(crate) token: String,
}

impl Authority {
    /// Of a network's data folder, as `holdfast init` makes it: `root.key` and `token.key`.
    ///
    /// # Errors
    /// A file is not there, or damaged.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let seed = |name: &str| {
            let path = folder.join(name);
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            BASE64_URL_SAFE_NO_PAD
                .decode(text.trim())
                .with_context(|| format!("{} is damaged", path.display()))
        };
        let root = trust::RootKey::from_seed(&seed("root.key")?)?;
        Ok(Self { network: root.network(), token_key: TokenKey::from_seed(&seed("token.key")?)? })
    }

    pub(crate) fn member(&self, role: Role) -> anyhow::Result<Member> {
        self.member_with(role, |_| ())
    }

    /// One whose token is not what it should be.
    pub(crate) fn member_with(
        &self,
        role: Role,
        change: impl FnOnce(&mut ClientClaims),
    ) -> anyhow::Result<Member> {
        let identity = Identity::generate()?;
        let client = ClientId::random();
        let now_s = unix_ms() / 1_000;
        let mut claims = ClientClaims {
            network: self.network,
            client,
            role,
            thumbprint: identity.public().thumbprint(),
            epoch: 0,
            issued_at_s: now_s,
            expires_at_s: now_s + 3_600,
        };
        change(&mut claims);
        Ok(Member { token: claims.sign(&self.token_key)?, identity, client, role })
    }

    /// A contract of so many bytes; its name and its text.
    pub(crate) fn contract(&self, opener: &Member, bytes: u64) -> anyhow::Result<(ContractId, String)> {
        let contract = ContractId::random();
        let claims = ContractClaims {
            network: self.network,
            contract,
            payer: AccountId(uuid::Uuid::from_u128(1)),
            opener: opener.client,
            bytes,
            expires_at_s: unix_ms() / 1_000 + 3_600,
            offline: false,
        };
        Ok((contract, claims.sign(&self.token_key)?))
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("network", &self.network).finish_non_exhaustive()
    }
}
