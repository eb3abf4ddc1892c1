//! Tokens of an issuer elsewhere (JWT). What is taken is pinned by the configuration, never by a token:
//! the algorithms, the issuer, the audience and where the keys are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use lula_config::{Config, ConfigKey, keys as settings};
use lula_protocol::{Code, Principal};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwks::{KeySet, KeySource};
use super::{Identity, IdentitySetupError, ServerRole, unknown};
use crate::problem::{ApiRefusal, ApiResult};

/// How far clocks may be apart, in seconds.
const SKEW: u64 = 30;
/// What a token may call itself.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];
/// Signatures of a key pair: with a secret that is shared, every holder could make tokens.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// What makes a token count.
#[derive(Debug, Clone)]
pub(super) struct TokenRules {
    pub(super) issuer: String,
    pub(super) audience: String,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) roles_claim: String,
    /// What values of the claim stand for.
    pub(super) roles: BTreeMap<String, ServerRole>,
}

/// Checks tokens by rules and keys.
pub(crate) struct TokenCheck {
    rules: TokenRules,
    keys: Arc<KeySet>,
}

#[derive(Deserialize)]
struct TokenClaims {
    sub: String,
    #[serde(flatten)]
    others: Map<String, Value>,
}

fn needed(
    config: &Config,
    mode: &str,
    key: &'static ConfigKey<String>,
) -> Result<String, IdentitySetupError> {
    let value = config.get(key);
    if value.is_empty() {
        return Err(IdentitySetupError::Missing {
            mode: mode.to_owned(),
            key: key.spec().name,
        });
    }
    Ok(value)
}

impl TokenRules {
    fn of(config: &Config) -> Result<Self, IdentitySetupError> {
        let mode = config.get(&settings::SERVER_AUTH);
        let bad = |key: &'static str, why: String| IdentitySetupError::BadSetting { key, why };
        let mut algorithms = Vec::new();
        for name in config.get(&settings::SERVER_JWT_ALGORITHMS) {
            let found = ALGORITHMS
                .into_iter()
                .find(|one| format!("{one:?}") == name);
            let key = settings::SERVER_JWT_ALGORITHMS.spec().name;
            algorithms.push(found.ok_or_else(|| bad(key, format!("{name:?} is not taken")))?);
        }
        let mut roles = BTreeMap::new();
        for entry in config.get(&settings::SERVER_JWT_ROLES) {
            let found = entry.rsplit_once('=');
            let found = found.and_then(|(value, role)| {
                Some((value.to_owned(), role.parse::<ServerRole>().ok()?))
            });
            let key = settings::SERVER_JWT_ROLES.spec().name;
            let (value, role) =
                found.ok_or_else(|| bad(key, format!("{entry:?} names no role")))?;
            roles.insert(value, role);
        }
        Ok(Self {
            issuer: needed(config, &mode, &settings::SERVER_JWT_ISSUER)?,
            audience: needed(config, &mode, &settings::SERVER_JWT_AUDIENCE)?,
            algorithms,
            roles_claim: config.get(&settings::SERVER_JWT_ROLES_CLAIM),
            roles,
        })
    }

    /// Whether a header asks for what is taken, and for nothing that would choose its own key.
    fn refuse_header(&self, header: &Header) -> Result<(), &'static str> {
        if !self.algorithms.contains(&header.alg) {
            return Err("the token is signed in a way that is not taken here");
        }
        let brings_keys = header.jku.is_some()
            || header.jwk.is_some()
            || header.x5u.is_some()
            || header.x5c.is_some();
        if brings_keys || header.crit.is_some() || header.enc.is_some() {
            return Err("the header of the token asks for what is not taken here");
        }
        let typ = header.typ.as_deref().map(str::to_ascii_lowercase);
        if typ.is_some_and(|typ| !TYPES.contains(&typ.as_str())) {
            return Err("the token is of another type");
        }
        Ok(())
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = SKEW;
        validation.validate_nbf = true;
        validation.set_audience(&[&self.audience]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    /// Who a token is of, by the key it names.
    fn check(&self, token: &str, key: &Jwk, header: &Header) -> ApiResult<Identity> {
        let refused = || unknown("the token does not count here");
        let decoding = DecodingKey::from_jwk(key).map_err(|_| refused())?;
        let validation = self.validation(header.alg);
        let decoded = jsonwebtoken::decode::<TokenClaims>(token, &decoding, &validation);
        let claims = decoded.map_err(|_| refused())?.claims;
        let principal: Principal = claims
            .sub
            .parse()
            .map_err(|_| unknown("the subject of the token cannot be a name here"))?;
        Ok(Identity {
            principal,
            roles: self.roles(claims.others.get(&self.roles_claim)),
            votes_as: words(claims.others.get(&self.roles_claim)),
            repositories: None,
            is_alone: false,
        })
    }

    fn roles(&self, claim: Option<&Value>) -> BTreeSet<ServerRole> {
        let words = words(claim);
        let roles = words.iter().filter_map(|word| self.roles.get(word));
        roles.copied().collect()
    }
}

/// A claim that is a list, or words in one text.
fn words(claim: Option<&Value>) -> BTreeSet<String> {
    match claim {
        Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(items)) => {
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The key that a token names, where it fits the token.
fn fitting<'a>(keys: &'a [Jwk], header: &Header) -> Option<&'a Jwk> {
    let kid = header.kid.as_deref()?;
    let mut named = keys
        .iter()
        .filter(|key| key.common.key_id.as_deref() == Some(kid));
    // Two keys of one name: which one is meant is not the token's to choose.
    let (Some(key), None) = (named.next(), named.next()) else {
        return None;
    };
    let signs = matches!(
        key.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    let algorithm = key.common.key_algorithm;
    let algorithm = algorithm.is_none_or(|one| one.to_string() == format!("{:?}", header.alg));
    let shared = matches!(key.algorithm, AlgorithmParameters::OctetKey(_));
    (signs && algorithm && !shared).then_some(key)
}

impl TokenCheck {
    /// By the configuration, with the keys as they are now.
    pub(crate) async fn of(config: &Config) -> Result<Arc<Self>, IdentitySetupError> {
        let rules = TokenRules::of(config)?;
        let place = needed(config, "jwt", &settings::SERVER_JWT_KEYS)?;
        let bad = |why: String| IdentitySetupError::BadSetting {
            key: settings::SERVER_JWT_KEYS.spec().name,
            why,
        };
        let source = KeySource::of(&place).map_err(bad)?;
        let keys = KeySet::open(source).await.map_err(bad)?;
        Ok(Arc::new(Self { rules, keys }))
    }

    /// Who a token is of.
    pub(crate) async fn identify(&self, token: &str) -> ApiResult<Identity> {
        let header = jsonwebtoken::decode_header(token);
        let header = header.map_err(|_| unknown("the token cannot be read"))?;
        self.rules.refuse_header(&header).map_err(unknown)?;
        if header.kid.is_none() {
            return Err(unknown("the token names no key"));
        }
        let stale = || {
            let what = "the keys of the issuer cannot be read, so no token is taken";
            ApiRefusal::new(503, Code::KeysUnusable, what)
        };
        let mut keys = self.keys.now().ok_or_else(stale)?;
        if fitting(&keys, &header).is_none() {
            // The issuer may have a new key.
            self.keys.look_again().await;
            keys = self.keys.now().ok_or_else(stale)?;
        }
        let key = fitting(&keys, &header);
        let key =
            key.ok_or_else(|| unknown("the token names a key that the issuer does not have"))?;
        self.rules.check(token, key, &header)
    }
}

#[cfg(test)]
mod tests;
