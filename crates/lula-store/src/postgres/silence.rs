//! How long a server may say nothing before a connection to it is given up.

use std::time::Duration;

use tokio_postgres::Config;

/// A server that has silently gone, or can be reached no more, is noticed while a lease lasts, and not
/// after the two hours that the system waits for. What the address asks for itself goes first.
pub(super) fn notice(config: &mut Config) {
    const BY_THE_SYSTEM: Duration = Duration::from_hours(2);
    const IDLE: Duration = Duration::from_secs(10);
    const BETWEEN: Duration = Duration::from_secs(3);
    const UNANSWERED: Duration = Duration::from_secs(20);
    if config.get_keepalives() && config.get_keepalives_idle() == BY_THE_SYSTEM {
        config.keepalives_idle(IDLE);
        config.keepalives_interval(config.get_keepalives_interval().unwrap_or(BETWEEN));
        config.keepalives_retries(config.get_keepalives_retries().unwrap_or(3));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNANSWERED);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(UNANSWERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noticed(url: &str) -> Config {
        let mut config: Config = url.parse().unwrap();
        notice(&mut config);
        config
    }

    #[test]
    fn a_silent_server_is_noticed_within_a_lease() {
        let lease = Duration::from_secs(30);
        let config = noticed("postgres://lula@db.example/lula");
        let (between, tries) = (
            config.get_keepalives_interval().unwrap(),
            config.get_keepalives_retries().unwrap(),
        );
        assert!(config.get_keepalives_idle() + between * tries < lease);
        assert!(*config.get_tcp_user_timeout().unwrap() < lease);
        assert!(*config.get_connect_timeout().unwrap() < lease);
    }

    #[test]
    fn what_an_address_asks_for_stays() {
        let url =
            "postgres://db.example/lula?keepalives_idle=60&tcp_user_timeout=5&connect_timeout=7";
        let config = noticed(url);
        assert_eq!(config.get_keepalives_idle(), Duration::from_mins(1));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(5)));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert!(!noticed("postgres://db.example/lula?keepalives=0").get_keepalives());
    }
}
