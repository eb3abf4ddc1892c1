//! Bearer keys as requests bring them. The file is read again when it changed, so that a key that was
//! taken back opens nothing with the next request; one that cannot be read lets no request in.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lula_host::record::now_ms;
use lula_protocol::Code;
use subtle::ConstantTimeEq;

use super::keys::{self, ServerKey};
use super::{Identity, unknown};
use crate::problem::{ApiRefusal, ApiResult};

/// What tells one version of a file from the next.
type FileStamp = (u64, i64, i64, u64);

/// The keys of this server.
#[derive(Debug)]
pub(super) struct BearerKeys {
    path: PathBuf,
    read: Mutex<Option<(Option<FileStamp>, Vec<ServerKey>)>>,
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = path.symlink_metadata().ok()?;
    Some((
        metadata.ino(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        metadata.size(),
    ))
}

impl BearerKeys {
    pub(super) fn at(state: &Path) -> Self {
        Self {
            path: state.join(keys::FILE),
            read: Mutex::default(),
        }
    }

    /// The key of a token. Secrets are compared as digests, in constant time.
    pub(super) fn identify(&self, token: &str) -> ApiResult<Identity> {
        let refused = || unknown("the key is not known, has expired or was taken back");
        let (id, secret) = keys::parts(token).ok_or_else(refused)?;
        let given = keys::digest(secret);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the file is read: a change in between is seen with the next request.
        let now = stamp(&self.path);
        let fresh = read.as_ref().is_some_and(|(stamp, _)| *stamp == now);
        if !fresh {
            *read = None;
            let found = keys::read(&self.path).map_err(|error| {
                tracing::error!(%error, "no bearer key is taken");
                let what = "the keys of this server cannot be read";
                ApiRefusal::new(503, Code::KeysUnusable, what)
            })?;
            *read = Some((now, found));
        }
        let known = read.iter().flat_map(|(_, keys)| keys);
        let key = known.filter(|key| key.id == id).find(|key| {
            let same = key.digest.as_bytes().ct_eq(given.as_bytes());
            bool::from(same)
        });
        let key = key.ok_or_else(refused)?;
        if key.revoked || key.expires_ms.is_some_and(|end| end <= now_ms()) {
            return Err(refused());
        }
        Ok(Identity {
            principal: key.principal.clone(),
            roles: key.roles.clone(),
            votes_as: key.votes_as.clone(),
            repositories: key.repositories.clone(),
            is_alone: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ServerRole;
    use crate::identity::keys::{ServerKeyRequest, ServerKeys};

    fn asked(expires: Option<std::time::Duration>) -> ServerKeyRequest {
        ServerKeyRequest {
            principal: "ada@example.org".parse().unwrap(),
            roles: vec![ServerRole::Operator],
            votes_as: Vec::new(),
            repositories: Vec::new(),
            expires,
        }
    }

    #[test]
    fn a_key_opens_until_it_is_taken_back() {
        let state = tempfile::tempdir().unwrap();
        let mut keys = ServerKeys::open(state.path()).unwrap();
        let token = keys.add(asked(None), now_ms()).unwrap();
        let bearer = BearerKeys::at(state.path());
        let who = bearer.identify(&token).unwrap();
        assert_eq!(who.principal.as_str(), "ada@example.org");
        let id = keys.listed()[0].id.clone();
        assert!(id.starts_with('k'), "{id} could be taken for a flag");
        keys.revoke(&id).unwrap();
        assert_eq!(bearer.identify(&token).unwrap_err().status(), 401);
    }

    #[test]
    fn a_wrong_an_expired_and_a_cut_key_open_nothing() {
        let state = tempfile::tempdir().unwrap();
        let mut keys = ServerKeys::open(state.path()).unwrap();
        let good = keys.add(asked(None), now_ms()).unwrap();
        let old = keys
            .add(asked(Some(std::time::Duration::from_millis(1))), now_ms())
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let bearer = BearerKeys::at(state.path());
        let (head, secret) = good.split_once('.').unwrap();
        let other = old.split_once('.').unwrap().1;
        for bad in [
            old.clone(),
            format!("{head}.{other}"),
            format!("{head}."),
            head.to_owned(),
            format!("lula_.{secret}"),
            good[..good.len() - 1].to_owned(),
        ] {
            assert_eq!(bearer.identify(&bad).unwrap_err().status(), 401);
        }
    }

    #[test]
    fn the_file_holds_no_secret_and_no_key_counts_that_others_could_have_written() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let mut keys = ServerKeys::open(state.path()).unwrap();
        let token = keys.add(asked(None), now_ms()).unwrap();
        let path = state.path().join(keys::FILE);
        let secret = token.split_once('.').unwrap().1.to_owned();
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&secret));
        let bearer = BearerKeys::at(state.path());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(bearer.identify(&token).unwrap_err().status(), 503);
    }
}
