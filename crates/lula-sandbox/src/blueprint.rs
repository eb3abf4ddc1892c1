//! A sandbox as the zygote is asked for it: plain data, decided beforehand by the runner.
//!
//! The zygote and init carry it out step by step and decide nothing themselves.

use lula_protocol::IsolationTier;
use lula_protocol::receipt::WorkspaceMode;

use crate::frames::{ExecFrameError, FrameReader, FrameWriter};
use crate::landlock::{PathAccess, PathGrant};
use crate::seccomp::BpfInstruction;

/// The user and group every command sees itself as.
pub(crate) const INSIDE_ID: u32 = 1000;

/// A path of the host shown inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BindMount {
    pub(crate) source: String,
    pub(crate) target: String,
    /// A single file, not a directory.
    pub(crate) file: bool,
}

/// A path of the host placed into each sandbox by itself: every writable one, and those that lie
/// below a private directory. Identified, so that nothing can be put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedPath {
    pub(crate) bind: BindMount,
    pub(crate) writable: bool,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) owner: (u32, u32),
}

/// The workspace as layers: what is written goes to the uppermost, nothing below ever changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlueprintOverlay {
    /// What is seen through it, most recent first, each to be held at a place that no process inside
    /// can reach.
    pub(crate) lowers: Vec<PlacedPath>,
    /// The directory with the upper layer and the kernel's working space: one mount, as it demands.
    /// Its owner is the upper layer's.
    pub(crate) above: PlacedPath,
    /// Where these two are.
    pub(crate) upper: String,
    pub(crate) work: String,
    /// Whether nothing written is flushed to disk while it is mounted, nor at its end.
    pub(crate) unflushed: bool,
}

/// The directory a sandbox is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspacePlan {
    pub(crate) path: String,
    pub(crate) writable: bool,
    /// Which device the real tree is on.
    pub(crate) device: u64,
    pub(crate) overlay: Option<BlueprintOverlay>,
}

/// The part of the root that sandboxes of the same policy share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RootPlan {
    /// Read-only binds, parents before children.
    pub(crate) binds: Vec<BindMount>,
    /// Links, each with where it points.
    pub(crate) links: Vec<(String, String)>,
    /// Directories that only have to exist, mostly to mount on.
    pub(crate) directories: Vec<String>,
    /// Files of ours with their text.
    pub(crate) files: Vec<(String, String)>,
    /// Small files of the host, to be copied.
    pub(crate) copies: Vec<String>,
}

/// The largest file that is copied: that is done once for a root, and one more mount costs every sandbox.
pub(crate) const SMALL: usize = 128 * 1024;

/// Which layers a sandbox is built with. Everything is on unless it is turned off by name.
#[allow(clippy::struct_excessive_bools)] // one switch for each layer
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayerSwitches {
    pub(crate) namespaces: bool,
    pub(crate) landlock: bool,
    pub(crate) seccomp: bool,
    pub(crate) no_new_privileges: bool,
    pub(crate) no_capabilities: bool,
    pub(crate) rlimits: bool,
    pub(crate) no_network: bool,
    pub(crate) proc_masks: bool,
    /// Whether it must have a `/proc` that shows its own processes only. If not, the one around it is shown
    /// where no other can be mounted.
    pub(crate) own_proc: bool,
}

/// Everything the zygote needs to build one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxBlueprint {
    pub(crate) tier: IsolationTier,
    /// The root, by the number its plan was announced under. None has the number 0: then the host's
    /// own tree is seen.
    pub(crate) template: u32,
    /// Paths to show, each parent before its children.
    pub(crate) placed: Vec<PlacedPath>,
    pub(crate) workspace: WorkspacePlan,
    /// Directories of the sandbox's own at paths of the host.
    pub(crate) private: Vec<String>,
    /// Host directories shown below a private layer.
    pub(crate) caches: Vec<BindMount>,
    /// Paths hidden even where a grant would show them.
    pub(crate) masks: Vec<String>,
    /// Size of the private directories together.
    pub(crate) scratch_bytes: u64,
    pub(crate) open_files: u64,
    pub(crate) file_size: Option<u64>,
    pub(crate) grants: Vec<PathGrant>,
    /// The version of Landlock that the program was chosen for.
    pub(crate) landlock_abi: u32,
    pub(crate) program: Vec<BpfInstruction>,
    /// What the first process puts behind the arguments of `kill`, where the program asks it for that.
    pub(crate) signal_key: Option<[u32; 3]>,
    /// Whether the program's refusals are answered by the runner, which remembers them.
    pub(crate) listened: bool,
    /// Whether the calls of the first process itself are watched: then the runner listens before it
    /// looks around.
    pub(crate) watched: bool,
    pub(crate) switches: LayerSwitches,
    /// The ports of listeners behind every address of its network, where its network has any.
    pub(crate) door: Option<Vec<u16>>,
    /// The first descriptor after the socket is a v2 control group to be born in.
    pub(crate) born_in_cgroup: bool,
}

/// What a message to the zygote asks for, in its first byte.
const BUILD: u8 = 1;
const ANNOUNCE: u8 = 2;

/// How many announced plans both sides remember; the oldest goes first.
pub(crate) const MOST_TEMPLATES: usize = 16;

impl RootPlan {
    /// As a message: sandboxes with this root are going to come, under that number. There is no
    /// answer.
    pub(crate) fn announce(&self, number: u32) -> Vec<u8> {
        let mut writer = FrameWriter::new();
        writer.u8(ANNOUNCE).u32(number);
        write_root(&mut writer, self);
        writer.bytes
    }

    /// Number and plan of such a message; `None` where it is another.
    pub(crate) fn announced(bytes: &[u8]) -> Option<Result<(u32, Self), ExecFrameError>> {
        let (ANNOUNCE, rest) = bytes.split_first().map(|(kind, rest)| (*kind, rest))? else {
            return None;
        };
        let mut reader = FrameReader::new(rest);
        let mut read = || {
            let number = reader.u32("number of the template")?;
            let plan = read_root(&mut reader)?;
            reader.end().map(|()| (number, plan))
        };
        Some(read())
    }
}

impl SandboxBlueprint {
    /// As a message: build this sandbox.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = FrameWriter::new();
        let w = &mut writer;
        w.u8(BUILD);
        w.text(self.tier.name());
        w.u32(self.template);
        w.list(&self.placed, write_placed);
        let workspace = &self.workspace;
        w.text(&workspace.path)
            .bool(workspace.writable)
            .u64(workspace.device)
            .option(workspace.overlay.as_ref(), |w, overlay| {
                w.list(&overlay.lowers, write_placed);
                write_placed(w, &overlay.above);
                w.text(&overlay.upper)
                    .text(&overlay.work)
                    .bool(overlay.unflushed);
            });
        w.list(&self.private, |w, path| {
            w.text(path);
        });
        w.list(&self.caches, write_bind)
            .list(&self.masks, |w, path| {
                w.text(path);
            })
            .u64(self.scratch_bytes)
            .u64(self.open_files)
            .option(self.file_size, |w, size| {
                w.u64(size);
            })
            .list(&self.grants, |w, grant| {
                w.text(&grant.path).u8(grant.access.number());
            })
            .list(&self.program, |w, one| {
                w.u16(one.code).u8(one.jt).u8(one.jf).u32(one.k);
            });
        let on = self.switches;
        for switch in [
            on.namespaces,
            on.landlock,
            on.seccomp,
            on.no_new_privileges,
            on.no_capabilities,
            on.rlimits,
            on.no_network,
            on.proc_masks,
            on.own_proc,
        ] {
            w.bool(switch);
        }
        w.bool(self.born_in_cgroup)
            .bool(self.listened)
            .bool(self.watched)
            .u32(self.landlock_abi)
            .option(self.signal_key.as_ref(), |w, key| {
                for word in key {
                    w.u32(*word);
                }
            })
            .option(self.door.as_ref(), |w, ports| {
                w.list(ports, |w, port| {
                    w.u16(*port);
                });
            });
        writer.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ExecFrameError> {
        let mut reader = FrameReader::new(bytes);
        let r = &mut reader;
        let kind = r.u8("kind of request")?;
        if kind != BUILD {
            return Err(ExecFrameError::Unknown {
                what: "kind of request",
                value: kind.into(),
            });
        }
        let blueprint = Self {
            tier: IsolationTier::from_name(&r.text("tier")?)
                .ok_or(ExecFrameError::NotText { what: "tier" })?,
            template: r.u32("template")?,
            placed: r.list("placed", read_placed)?,
            workspace: WorkspacePlan {
                path: r.text("workspace")?,
                writable: r.bool("writable")?,
                device: r.u64("device")?,
                overlay: r.option("overlay", |r| {
                    Ok(BlueprintOverlay {
                        lowers: r.list("lowers", read_placed)?,
                        above: read_placed(r)?,
                        upper: r.text("upper")?,
                        work: r.text("work")?,
                        unflushed: r.bool("unflushed")?,
                    })
                })?,
            },
            private: r.list("private", |r| r.text("private"))?,
            caches: r.list("caches", read_bind)?,
            masks: r.list("masks", |r| r.text("mask"))?,
            scratch_bytes: r.u64("scratch")?,
            open_files: r.u64("open files")?,
            file_size: r.option("file size", |r| r.u64("file size"))?,
            grants: r.list("grants", |r| {
                Ok(PathGrant {
                    path: r.text("grant")?,
                    access: {
                        let number = r.u8("access")?;
                        PathAccess::from_number(number).ok_or(ExecFrameError::Unknown {
                            what: "access",
                            value: number.into(),
                        })?
                    },
                })
            })?,
            program: r.list("program", |r| {
                Ok(BpfInstruction {
                    code: r.u16("code")?,
                    jt: r.u8("jt")?,
                    jf: r.u8("jf")?,
                    k: r.u32("k")?,
                })
            })?,
            switches: LayerSwitches {
                namespaces: r.bool("namespaces")?,
                landlock: r.bool("landlock")?,
                seccomp: r.bool("seccomp")?,
                no_new_privileges: r.bool("no_new_privileges")?,
                no_capabilities: r.bool("no_capabilities")?,
                rlimits: r.bool("rlimits")?,
                no_network: r.bool("no_network")?,
                proc_masks: r.bool("proc_masks")?,
                own_proc: r.bool("own_proc")?,
            },
            born_in_cgroup: r.bool("cgroup")?,
            listened: r.bool("listened")?,
            watched: r.bool("watched")?,
            landlock_abi: r.u32("version of Landlock")?,
            signal_key: r.option("key", |r| Ok([r.u32("key")?, r.u32("key")?, r.u32("key")?]))?,
            door: r.option("door", |r| r.list("ports", |r| r.u16("port")))?,
        };
        reader.end()?;
        Ok(blueprint)
    }

    /// Everything of the host that a sandbox gets with its owner shifted.
    pub(crate) fn shifted(&self) -> impl Iterator<Item = &PlacedPath> {
        self.placed.iter().chain(self.layers())
    }

    /// The layers of the workspace, in the order in which they are handed over.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &PlacedPath> {
        let overlay = self.workspace.overlay.as_ref();
        overlay
            .into_iter()
            .flat_map(|overlay| overlay.lowers.iter().chain([&overlay.above]))
    }

    /// Whether the end of the sandbox has to wait until what was written is on disk.
    pub(crate) fn is_flushed(&self) -> bool {
        let layers = self.workspace.overlay.as_ref();
        layers.is_some_and(|overlay| !overlay.unflushed)
    }

    /// What writing to the workspace is to do.
    pub(crate) fn mode(&self) -> WorkspaceMode {
        match self.workspace {
            WorkspacePlan {
                writable: false, ..
            } => WorkspaceMode::ReadOnly,
            WorkspacePlan {
                overlay: Some(_), ..
            } => WorkspaceMode::Overlay,
            WorkspacePlan { overlay: None, .. } => WorkspaceMode::Direct,
        }
    }
}

fn read_root(r: &mut FrameReader<'_>) -> Result<RootPlan, ExecFrameError> {
    Ok(RootPlan {
        binds: r.list("binds", read_bind)?,
        links: r.list("links", read_pair)?,
        directories: r.list("directories", |r| r.text("directory"))?,
        files: r.list("files", read_pair)?,
        copies: r.list("copies", |r| r.text("copy"))?,
    })
}

fn write_root(w: &mut FrameWriter, root: &RootPlan) {
    w.list(&root.binds, write_bind)
        .list(&root.links, write_pair)
        .list(&root.directories, |w, path| {
            w.text(path);
        })
        .list(&root.files, write_pair)
        .list(&root.copies, |w, path| {
            w.text(path);
        });
}

fn write_placed(w: &mut FrameWriter, placed: &PlacedPath) {
    write_bind(w, &placed.bind);
    w.bool(placed.writable)
        .u64(placed.device)
        .u64(placed.inode)
        .u32(placed.owner.0)
        .u32(placed.owner.1);
}

fn read_placed(r: &mut FrameReader<'_>) -> Result<PlacedPath, ExecFrameError> {
    Ok(PlacedPath {
        bind: read_bind(r)?,
        writable: r.bool("writable")?,
        device: r.u64("device")?,
        inode: r.u64("inode")?,
        owner: (r.u32("owner")?, r.u32("group")?),
    })
}

fn write_bind(w: &mut FrameWriter, bind: &BindMount) {
    w.text(&bind.source).text(&bind.target).bool(bind.file);
}

fn read_bind(r: &mut FrameReader<'_>) -> Result<BindMount, ExecFrameError> {
    Ok(BindMount {
        source: r.text("source")?,
        target: r.text("target")?,
        file: r.bool("file")?,
    })
}

fn write_pair(w: &mut FrameWriter, pair: &(String, String)) {
    w.text(&pair.0).text(&pair.1);
}

fn read_pair(r: &mut FrameReader<'_>) -> Result<(String, String), ExecFrameError> {
    Ok((r.text("path")?, r.text("text")?))
}
