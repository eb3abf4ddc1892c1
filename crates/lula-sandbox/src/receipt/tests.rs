use super::*;

fn context() -> ReceiptContext {
    ReceiptContext {
        tier: IsolationTier::Namespace,
        policy: Digest::of_bytes(b"policy"),
        granted: ResolvedLimits {
            memory_bytes: 512,
            cpu_millicores: 500,
            pids: 7,
            disk_bytes: 9,
            open_files: 1024,
            output_bytes: 10,
            wall_ms: 1000,
        },
        read_only: vec![],
        writable: vec![],
        program: Digest::of_bytes(b"program"),
        instructions: 1,
        no_sockets: false,
        watched: crate::seccomp::WatchedCalls::Connections,
        heard: true,
        clean_environment: true,
        cgroup: None,
        host: HostPosture {
            namespaces: vec![("net".to_owned(), 1), ("pid".to_owned(), 2)],
            root_device: 1,
            filters: 0,
        },
        door: None,
        environment: None,
        not_applied: vec![],
    }
}

fn outcome(how: Option<ExitCause>) -> CommandOutcome {
    CommandOutcome {
        how,
        timed_out: false,
        timeout_ms: 1000,
        wall_us: 1,
        cpu_us: None,
        peak_memory_bytes: None,
        events: CgroupLimitEvents::default(),
        stdout: (0, 0),
        stderr: (0, 0),
        scratch_full: false,
        disk_full: false,
    }
}

fn names(layers: &[ProtectionLayer]) -> Vec<&str> {
    layers.iter().map(ProtectionLayer::name).collect()
}

#[test]
fn a_process_with_nothing_around_it_gets_a_receipt_that_says_so() {
    let bare = KernelPosture {
        namespaces: vec![("net".to_owned(), 1), ("pid".to_owned(), 2)],
        capabilities: 1,
        root_device: 1,
        open_files: 1_000_000,
        interfaces: vec!["lo".to_owned(), "eth0".to_owned()],
        ..KernelPosture::default()
    };
    let layers = context().layers(&bare, &bare, &[]);
    assert_eq!(names(&layers), ["clean_environment"]);
}

type Weaken = fn(&mut KernelPosture);

#[test]
fn each_layer_is_claimed_only_on_its_own_evidence() {
    let full = KernelPosture {
        no_new_privileges: true,
        seccomp_mode: 2,
        seccomp_filters: 1,
        namespaces: vec![("net".to_owned(), 10), ("pid".to_owned(), 20)],
        root_device: 9,
        interfaces: vec!["lo".to_owned()],
        landlock_abi: 7,
        landlock_rules: 3,
        open_files: 1024,
        ..KernelPosture::default()
    };
    let all = context().layers(&full, &full, &[]);
    let ways: [(&str, Weaken); 7] = [
        ("no_new_privileges", |p| p.no_new_privileges = false),
        ("seccomp", |p| p.seccomp_mode = 0),
        ("no_capabilities", |p| p.capabilities = 1),
        ("landlock", |p| p.landlock_abi = 0),
        ("rlimits", |p| p.open_files = 4096),
        ("no_network", |p| p.interfaces.push("eth0".to_owned())),
        ("private_root", |p| p.root_device = 1),
    ];
    for (name, weaken) in ways {
        assert!(names(&all).contains(&name), "{name}");
        let mut less = full.clone();
        weaken(&mut less);
        let layers = context().layers(&less, &less, &[]);
        assert!(!names(&layers).contains(&name), "{name} still claimed");
    }
}

#[test]
fn a_namespace_that_is_the_hosts_is_not_called_separate() {
    let shared_net = KernelPosture {
        namespaces: vec![("net".to_owned(), 1), ("pid".to_owned(), 20)],
        ..KernelPosture::default()
    };
    let layers = context().layers(&shared_net, &shared_net, &[]);
    assert!(layers.contains(&ProtectionLayer::Namespaces {
        separate: vec!["pid".to_owned()]
    }));
    assert!(!names(&layers).contains(&"no_network"));
}

#[test]
fn a_kill_is_called_memory_only_where_the_kernel_counted_one() {
    let killed = outcome(Some(ExitCause::Signal(SIGKILL)));
    assert_eq!(
        ended(&killed),
        Some(CommandEnding::Signalled { signal: SIGKILL })
    );
    let mut oom = killed;
    oom.events.oom_kills = 1;
    assert_eq!(
        ended(&oom),
        Some(CommandEnding::LimitReached {
            limit: "memory".to_owned()
        })
    );
    assert_eq!(ended(&outcome(None)), None);
}

#[test]
fn every_limit_met_is_a_denial_with_its_grant() {
    let mut bad = outcome(Some(ExitCause::Status(1)));
    bad.events.pids_refused = 3;
    bad.stdout = (100, 90);
    bad.timed_out = true;
    let denials = denials(&context(), &bad);
    let rules: Vec<_> = denials.iter().map(|denial| denial.rule.as_str()).collect();
    assert_eq!(rules, ["limits.wall", "limits.pids", "limits.output"]);
    assert_eq!(denials[1].count, 3);
    assert_eq!(denials[1].grant.as_deref(), Some("limits.pids above 7"));
}

#[test]
fn a_door_is_told_where_the_network_is_its_own() {
    let door = ReceiptContext {
        door: Some(DoorFacts {
            policy: Digest::of_bytes(b"door"),
            routes: vec!["local 0.0.0.0/0 dev lo table local".to_owned()],
            listening: vec!["tcp 0.0.0.0:443".to_owned()],
            published: vec![],
        }),
        ..context()
    };
    let own = KernelPosture {
        namespaces: vec![("net".to_owned(), 10)],
        interfaces: vec!["lo".to_owned()],
        ..KernelPosture::default()
    };
    let layers = door.layers(&own, &own, &[]);
    let named = names(&layers);
    assert!(
        named.contains(&"egress") && !named.contains(&"no_network"),
        "{named:?}"
    );
    // With another interface neither is claimed, whatever was asked for.
    let mut shared = own.clone();
    shared.interfaces.push("eth0".to_owned());
    let layers = door.layers(&shared, &shared, &[]);
    let named = names(&layers);
    assert!(
        !named.contains(&"egress") && !named.contains(&"no_network"),
        "{named:?}"
    );
}
