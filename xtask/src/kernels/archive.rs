//! Kernels as distributions package them, from the mirror that this machine's own package manager uses.
//! Nothing is installed, and the machine's own lists are left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    Debian,
    Ubuntu,
}

/// Which package has a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KernelPackage {
    /// One that depends on the newest.
    Newest(&'static str),
    /// The newest whose name begins and ends so.
    Between(&'static str, &'static str),
}

/// A mirror, and where what comes from it is kept.
pub(crate) struct Archive {
    /// The address of Debian's tree on it.
    debian: String,
    work: PathBuf,
}

/// One suite of a distribution, whose list of packages was read.
pub(crate) struct Suite {
    options: Vec<String>,
    folder: PathBuf,
}

const DEBIAN_KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Archive {
    /// The mirror of this machine.
    pub(crate) fn of_this_machine(work: &Path) -> Result<Self> {
        let lists = work.join("lists");
        fs::create_dir_all(lists.join("partial"))?;
        // With no list at hand it has to say where each comes from.
        let asked = Command::new("apt-get")
            .arg("-o")
            .arg(format!("Dir::State::Lists={}", lists.display()))
            .args(["--print-uris", "update"])
            .output()
            .context("kernels come from a mirror that apt-get knows: there is no apt-get here")?;
        let said = String::from_utf8_lossy(&asked.stdout);
        let debian = tree(&said, "debian").context("apt-get knows no mirror of Debian")?;
        Ok(Self {
            debian,
            work: work.to_owned(),
        })
    }

    /// Reads the list of a suite, which has to be signed by its distribution.
    pub(crate) fn suite(&self, of: Distribution, name: &str) -> Result<Suite> {
        let (tree, keys) = match of {
            Distribution::Debian => (self.debian.clone(), PathBuf::from(DEBIAN_KEYS)),
            // Mirrors that have both have them side by side. Debian signs a package with Ubuntu's keys.
            Distribution::Ubuntu => (
                self.debian.trim_end_matches("debian").to_owned() + "ubuntu",
                self.ubuntu_keys()?,
            ),
        };
        let folder = self.work.join("suites").join(name);
        for part in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let list = format!("deb [signed-by={}] {tree} {name} main\n", keys.display());
        fs::write(folder.join("sources.list"), list)?;
        let place = |key: &str, path: &str| format!("{key}={}", folder.join(path).display());
        let options = [
            place("Dir::Etc::SourceList", "sources.list"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            place("Dir::State::Lists", "lists"),
            "Dir::State::status=/dev/null".to_owned(),
            place("Dir::Cache", ""),
            place("Dir::Cache::archives", "archives"),
            "Acquire::Languages=none".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ];
        let options = options.into_iter().flat_map(|one| ["-o".to_owned(), one]);
        let suite = Suite {
            options: options.collect(),
            folder,
        };
        suite
            .apt("apt-get", &["update", "--error-on=any"])
            .with_context(|| format!("the mirror of this machine has no {name} of {of:?}"))?;
        Ok(suite)
    }

    fn ubuntu_keys(&self) -> Result<PathBuf> {
        let to = self.work.join("ubuntu-keyring");
        let keys = to.join("usr/share/keyrings/ubuntu-archive-keyring.gpg");
        if !keys.exists() {
            let suite = self.suite(Distribution::Debian, "trixie")?;
            suite.unpack("ubuntu-keyring", &to)?;
        }
        Ok(keys)
    }
}

impl Suite {
    fn apt(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let done = Command::new(program)
            .arg("-qq")
            .args(&self.options)
            .args(arguments)
            .current_dir(self.folder.join("archives"))
            .output()?;
        ensure!(
            done.status.success(),
            "{program} {} ended with {}: {}",
            arguments.join(" "),
            done.status,
            String::from_utf8_lossy(&done.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// The packages whose name begins so that a package depends on.
    fn needs(&self, package: &str, prefix: &str) -> Result<Vec<String>> {
        let said = self.apt("apt-cache", &["depends", package])?;
        let needs = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(needs
            .filter(|name| name.starts_with(prefix))
            .map(str::to_owned)
            .collect())
    }

    /// Unpacks a kernel and its modules, and tells the name of its package.
    pub(crate) fn kernel(&self, package: KernelPackage, to: &Path) -> Result<String> {
        let image = match package {
            KernelPackage::Newest(name) => self.needs(name, "linux-image-")?.into_iter().next(),
            KernelPackage::Between(start, end) => {
                let said = self.apt("apt-cache", &["pkgnames", start])?;
                let names = said.lines().filter(|name| name.ends_with(end));
                names.max_by_key(|name| numbers(name)).map(str::to_owned)
            }
        };
        let Some(image) = image else {
            bail!("the suite has no such kernel: {package:?}");
        };
        self.unpack(&image, to)?;
        for modules in self.needs(&image, "linux-modules-")? {
            self.unpack(&modules, to)?;
        }
        Ok(image)
    }

    /// Puts what is in a package below a folder.
    pub(crate) fn unpack(&self, package: &str, to: &Path) -> Result<()> {
        let archives = self.folder.join("archives");
        self.apt("apt-get", &["download", package])?;
        let file = fs::read_dir(&archives)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| {
                    name.starts_with(&format!("{package}_"))
                        && Path::new(name).extension().is_some_and(|end| end == "deb")
                })
            })
            .with_context(|| format!("{package} was not downloaded"))?;
        fs::create_dir_all(to)?;
        let unpacked = Command::new("dpkg-deb")
            .arg("-x")
            .args([&file, to])
            .status()?;
        ensure!(unpacked.success(), "cannot unpack {}", file.display());
        Ok(fs::remove_file(file)?)
    }
}

/// The address of a tree, in what `apt-get --print-uris update` says.
fn tree(said: &str, name: &str) -> Option<String> {
    let addresses = said.lines().filter_map(|line| {
        let (address, _) = line.strip_prefix('\'')?.split_once("/dists/")?;
        address
            .ends_with(&format!("/{name}"))
            .then(|| address.to_owned())
    });
    addresses.into_iter().next()
}

fn numbers(name: &str) -> Vec<u32> {
    let words = name.split(|letter: char| !letter.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_that_the_package_manager_names() {
        let said = "'https://other.example/apt/dists/stable/InRelease' a 0 \n\
                    'http://mirror.example/x/debian/dists/bookworm/InRelease' b 0 \n\
                    'http://mirror.example/x/debian-security/dists/bookworm-security/InRelease' c 0 \n";
        assert_eq!(
            tree(said, "debian").unwrap(),
            "http://mirror.example/x/debian"
        );
        assert_eq!(tree("", "debian"), None);
    }

    #[test]
    fn the_newest_version_is_told_by_numbers() {
        let names = [
            "linux-image-6.5.0-9-generic",
            "linux-image-6.5.0-45-generic",
        ];
        assert_eq!(
            names.into_iter().max_by_key(|name| numbers(name)),
            Some("linux-image-6.5.0-45-generic")
        );
    }
}
