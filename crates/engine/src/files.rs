//! How many sockets this process may hold: each attempt in flight is one, and each idle connection another.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors left for the store, the API's own connections and everything else, at least.
const KEPT: u64 = 256;

/// Raises the soft limit of open files as far as the system allows, and says how many attempts fit under it at once:
/// an attempt that fails for want of a descriptor would count against its delivery.
pub(crate) fn attempts_that_fit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
    }
    fit(getrlimit(Resource::Nofile).current)
}

/// `None` is no limit.
fn fit(limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return usize::MAX;
    };
    let attempts = limit.saturating_sub(KEPT).max(limit / 4) / 2;
    usize::try_from(attempts.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_left_is_for_attempts() {
        for (limit, attempts) in [
            (Some(1024), 384),
            (Some(1_048_576), 524_160),
            (Some(256), 32),
            (Some(8), 1),
            (Some(0), 1),
            (None, usize::MAX),
        ] {
            assert_eq!(fit(limit), attempts, "{limit:?}");
        }
    }
}
