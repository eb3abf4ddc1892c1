//! Policies as users write and combine them.

use proptest::prelude::*;

use super::*;

const MACHINE: MachineCapacity = MachineCapacity {
    memory_bytes: 16 << 30,
    cpu_millicores: 8_000,
};

fn problems(text: &str) -> String {
    SandboxPolicy::from_toml(text).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_the_build_profile() {
    assert_eq!(
        SandboxPolicy::from_toml("").unwrap(),
        Profile::Build.policy()
    );
}

#[test]
fn strict_grants_half_a_gigabyte_half_a_cpu_and_256_processes() {
    let granted = Profile::Strict.policy().limits.granted(&MACHINE);
    assert_eq!(granted.memory_bytes, 512 << 20);
    assert_eq!(granted.cpu_millicores, 500);
    assert_eq!(granted.pids, 256);
}

#[test]
fn build_grants_a_stated_share_of_the_machine() {
    let granted = Profile::Build.policy().limits.granted(&MACHINE);
    assert_eq!(granted.memory_bytes, 12 << 30);
    assert_eq!(granted.cpu_millicores, 7_200);
}

#[test]
fn no_profile_grants_network_or_nested_user_namespaces() {
    for profile in Profile::ALL {
        let policy = profile.policy();
        assert_eq!(policy.network, Network::None);
        assert!(!policy.nested_userns);
        assert!(policy.required_layers.contains(&LayerName::Seccomp));
        assert!(policy.min_tier > IsolationTier::Process);
    }
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let policy = SandboxPolicy::from_toml(
        r#"
        profile = "strict"
        caches = ["cargo"]
        [paths]
        read = ["/opt/sdk/"]
        [environment]
        LANG = "C.UTF-8"
        [limits]
        memory = "2GiB"
        wall = "5m"
        "#,
    )
    .unwrap();
    let mut expected = Profile::Strict.policy();
    expected.caches.insert(PackageCache::Cargo);
    expected.paths.read.insert("/opt/sdk".parse().unwrap());
    expected
        .environment
        .insert("LANG".parse().unwrap(), "C.UTF-8".to_owned());
    expected.limits.memory = "2GiB".parse().unwrap();
    expected.limits.wall = "5m".parse().unwrap();
    assert_eq!(policy, expected);
}

#[test]
fn mistakes_name_line_key_and_remedy() {
    assert_eq!(
        problems("[limits]\nmemroy = \"1GiB\"\npids = 0\nwall = \"soon\""),
        "line 2: limits.memroy: unknown key; did you mean memory?\n\
         line 3: limits.pids: expected a whole number above zero\n\
         line 4: limits.wall: \"soon\" is not a duration: write a whole number above zero and a \
         unit, such as 90s (units: ms, s, m, h, d)"
    );
    assert_eq!(
        problems("\nprofile = \"strikt\"\nnetwork = \"*\""),
        "line 2: profile: no profile is called strikt; did you mean strict?\n\
         line 3: network: no network is called \"*\"; valid: none, allowlist"
    );
    assert_eq!(
        problems("required_layers = [\"seccomp\", \"secomp\", 1]\ncaches = \"cargo\""),
        "line 1: required_layers: expected text in quotes, found integer\n\
         line 1: required_layers: no layer is called secomp; did you mean seccomp?\n\
         line 2: caches: expected a list of texts in quotes, found string"
    );
    assert_eq!(
        problems("skip_approval = true"),
        "line 1: skip_approval: unknown key; valid: profile, min_tier, required_layers, network, \
         nested_userns, caches, paths, environment, limits"
    );
    assert!(
        problems("[paths]\nwrite = [\"/a/../etc\"]")
            .contains("line 2: paths.write: \"/a/../etc\" is not")
    );
    assert!(problems("[environment]\n\"A=B\" = \"x\"").contains("is not a variable name"));
    assert!(problems("[environment]\nA = \"\\u0000\"").contains("NUL"));
    assert!(problems("profile = ").starts_with("line 1: not TOML"));
    assert!(problems("limits = 3").contains("expected a table, found integer"));
}

#[test]
fn the_json_form_refuses_unknown_fields_too() {
    let mut value = serde_json::to_value(Profile::Build.policy()).unwrap();
    assert!(serde_json::from_value::<SandboxPolicy>(value.clone()).is_ok());
    value["skip_approval"] = true.into();
    assert!(serde_json::from_value::<SandboxPolicy>(value).is_err());
}

#[test]
fn layer_names_are_those_of_the_receipts() {
    use lula_protocol::ProtectionLayer;
    let receipts = [
        ProtectionLayer::Namespaces { separate: vec![] },
        ProtectionLayer::PrivateRoot {
            read_only: vec![],
            writable: vec![],
        },
        ProtectionLayer::Landlock { abi: 1, rules: 1 },
        ProtectionLayer::Seccomp {
            program: Digest::of_bytes(b""),
            instructions: 1,
        },
        ProtectionLayer::NoNewPrivileges,
        ProtectionLayer::NoCapabilities,
        ProtectionLayer::Cgroup {
            backend: String::new(),
            limits: lula_protocol::receipt::ReceiptLimits::default(),
        },
        ProtectionLayer::Rlimits {
            open_files: 1,
            file_size: None,
        },
        ProtectionLayer::NoNetwork,
        ProtectionLayer::Egress {
            policy: Digest::of_bytes(b""),
            interfaces: vec![],
            routes: vec![],
            listening: vec![],
            published: vec![],
        },
        ProtectionLayer::CleanEnvironment { names: vec![] },
    ];
    let receipts: Vec<_> = receipts.iter().map(ProtectionLayer::name).collect();
    let policies: Vec<_> = LayerName::ALL.iter().map(|layer| layer.name()).collect();
    assert_eq!(policies, receipts);
    for layer in LayerName::ALL {
        assert_eq!(serde_json::to_value(layer).unwrap(), layer.name());
        assert_eq!(LayerName::from_name(layer.name()), Some(*layer));
    }
}

#[test]
fn the_digest_moves_with_every_grant() {
    let policy = Profile::Build.policy();
    let mut wider = policy.clone();
    wider.paths.write.insert("/srv".parse().unwrap());
    assert_eq!(
        policy.digest().unwrap(),
        Profile::Build.policy().digest().unwrap()
    );
    assert_ne!(policy.digest().unwrap(), wider.digest().unwrap());
}

#[test]
fn what_one_may_write_and_the_other_read_both_may_read() {
    let overlay = PolicyOverlay::from_toml("[paths]\nread = [\"/data\"]\nwrite = []").unwrap();
    let mut policy = Profile::Build.policy();
    policy.paths.write.insert("/data/out".parse().unwrap());
    let tight = policy.tightened(&overlay, &MACHINE);
    assert!(tight.paths.write.is_empty());
    assert_eq!(
        tight.paths.read,
        BTreeSet::from(["/data/out".parse().unwrap()])
    );
}

fn path() -> impl Strategy<Value = AbsolutePath> {
    "(/[ab]{1,2}){1,3}".prop_map(|text| text.parse().unwrap())
}

fn paths() -> impl Strategy<Value = BTreeSet<AbsolutePath>> {
    proptest::collection::btree_set(path(), 0..4)
}

fn subset<T: Copy + Ord + std::fmt::Debug + 'static>(
    all: &'static [T],
) -> impl Strategy<Value = BTreeSet<T>> {
    proptest::sample::subsequence(all, 0..=all.len()).prop_map(|some| some.into_iter().collect())
}

fn memory() -> impl Strategy<Value = MemoryLimit> {
    prop_oneof![
        (1_u64..1 << 50).prop_map(|bytes| MemoryLimit::Fixed(ByteSize::new(bytes).unwrap())),
        (1_u8..=100).prop_map(|share| MemoryLimit::Share(Percent::new(share).unwrap())),
    ]
}

fn cpu() -> impl Strategy<Value = CpuLimit> {
    prop_oneof![
        (10_u32..64_000).prop_map(CpuLimit::Millicores),
        (1_u8..=100).prop_map(|share| CpuLimit::Share(Percent::new(share).unwrap())),
    ]
}

prop_compose! {
    fn limits()(
        memory in memory(), cpu in cpu(), pids in 1_u32.., open_files in 1_u32..,
        disk in 1_u64.., output in 1_u64.., wall in 1_u64..,
    ) -> SandboxLimits {
        let size = |bytes| ByteSize::new(bytes).unwrap();
        let wall = WallTime::from_millis(wall).unwrap();
        SandboxLimits { memory, cpu, pids, disk: size(disk), open_files, output: size(output), wall }
    }
}

prop_compose! {
    fn any_policy()(
        profile in proptest::sample::select(Profile::ALL),
        min_tier in proptest::sample::select(&IsolationTier::ALL[..]),
        required_layers in subset(LayerName::ALL),
        network in proptest::sample::select(&[Network::None, Network::Allowlist][..]),
        nested_userns: bool,
        caches in subset(PackageCache::ALL),
        read in paths(), write in paths(), mask in paths(),
        environment in proptest::collection::btree_map("[A-C]", "\\PC{0,3}|[ -~\n]{0,6}", 0..3),
        limits in limits(),
    ) -> SandboxPolicy {
        let environment = environment.into_iter().map(|(k, v)| (k.parse().unwrap(), v)).collect();
        SandboxPolicy {
            profile, min_tier, required_layers, network, nested_userns, caches,
            paths: PolicyPaths { read, write, mask }, environment, limits,
        }
    }
}

/// A policy's values as an overlay, each present or absent.
fn any_overlay() -> impl Strategy<Value = PolicyOverlay> {
    (any_policy(), any::<[bool; 16]>()).prop_map(|(policy, keep)| {
        let (limits, paths) = (policy.limits, policy.paths);
        PolicyOverlay {
            profile: keep[0].then_some(policy.profile),
            min_tier: keep[1].then_some(policy.min_tier),
            required_layers: keep[2].then_some(policy.required_layers),
            network: keep[3].then_some(policy.network),
            nested_userns: keep[4].then_some(policy.nested_userns),
            caches: keep[5].then_some(policy.caches),
            paths: PolicyOverlayPaths {
                read: keep[6].then_some(paths.read),
                write: keep[7].then_some(paths.write),
                mask: keep[8].then_some(paths.mask),
            },
            environment: keep[9].then_some(policy.environment),
            limits: PolicyOverlayLimits {
                memory: keep[10].then_some(limits.memory),
                cpu: keep[11].then_some(limits.cpu),
                pids: keep[12].then_some(limits.pids),
                disk: keep[13].then_some(limits.disk),
                open_files: keep[14].then_some(limits.open_files),
                output: keep[15].then_some(limits.output),
                wall: keep[15].then_some(limits.wall),
            },
        }
    })
}

fn may_read(policy: &SandboxPolicy, path: &AbsolutePath) -> bool {
    let granted = policy.paths.read.union(&policy.paths.write);
    granted.into_iter().any(|grant| grant.covers(path)) && !masked(policy, path)
}

fn may_write(policy: &SandboxPolicy, path: &AbsolutePath) -> bool {
    policy.paths.write.iter().any(|grant| grant.covers(path)) && !masked(policy, path)
}

fn masked(policy: &SandboxPolicy, path: &AbsolutePath) -> bool {
    policy.paths.mask.iter().any(|mask| mask.covers(path))
}

proptest! {
    #[test]
    fn every_policy_reads_back_from_its_own_toml_and_json(policy in any_policy()) {
        prop_assert_eq!(&SandboxPolicy::from_toml(&policy.to_toml()).unwrap(), &policy);
        let json = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<SandboxPolicy>(&json).unwrap(), policy);
    }

    #[test]
    fn a_tightened_policy_never_allows_more(policy in any_policy(), overlay in any_overlay(), path in path()) {
        let tight = policy.tightened(&overlay, &MACHINE);
        let asked = policy.clone().changed(overlay.clone());
        for looser in [&policy, &asked] {
            prop_assert!(!may_read(&tight, &path) || may_read(looser, &path));
            prop_assert!(!may_write(&tight, &path) || may_write(looser, &path));
            prop_assert!(tight.min_tier >= looser.min_tier);
            for layer in &looser.required_layers {
                // Nothing at all is more than what is reached by name only.
                let stricter = *layer == LayerName::Egress && tight.network == Network::None;
                let layer = if stricter { LayerName::NoNetwork } else { *layer };
                prop_assert!(tight.required_layers.contains(&layer));
            }
            prop_assert!(tight.network <= looser.network);
            prop_assert!(!tight.nested_userns || looser.nested_userns);
            prop_assert!(tight.caches.is_subset(&looser.caches));
            for (name, value) in &tight.environment {
                prop_assert_eq!(looser.environment.get(name), Some(value));
            }
            let (small, large) = (tight.limits.granted(&MACHINE), looser.limits.granted(&MACHINE));
            prop_assert!(small.memory_bytes <= large.memory_bytes);
            prop_assert!(small.cpu_millicores <= large.cpu_millicores);
            prop_assert!(small.pids <= large.pids && small.disk_bytes <= large.disk_bytes);
            prop_assert!(small.open_files <= large.open_files);
            prop_assert!(small.output_bytes <= large.output_bytes && small.wall_ms <= large.wall_ms);
        }
    }

    #[test]
    fn a_tightened_policy_keeps_what_both_allow(policy in any_policy(), path in path()) {
        let same = policy.tightened(&PolicyOverlay::default(), &MACHINE);
        prop_assert_eq!(may_read(&same, &path), may_read(&policy, &path));
        prop_assert_eq!(may_write(&same, &path), may_write(&policy, &path));
        prop_assert_eq!(same.limits, policy.limits);
    }

    #[test]
    fn hostile_text_never_panics(text in "\\PC{0,60}|[a-z_=\\[\\]\"\n. ]{0,80}") {
        let _ = SandboxPolicy::from_toml(&text);
    }
}
