// An extension for pi: it may change usual files in the folder in which it runs, and no others.
import { readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

const MOST_LINKS = 40;
// As in program_files.py: files and folders that are not hidden and make programs run.
const FILES = [
  "amplify.yml", "appveyor.yml", "binding.gyp", "bitbucket-pipelines.yml", "bitrise.yml", "buildspec.yml",
  "bunfig.toml", "circle.yml", "cloudbuild.yaml", "cloudbuild.yml", "codebuff.json", "codemagic.yaml",
  "composer.json", "crush.json", "default.nix", "devbox.json", "flake.nix", "guix.scm", "hk.pkl", "manifest.scm",
  "mcp.json", "mise", "netlify.toml", "opencode.json", "opencode.jsonc", "pnpm-workspace.yaml", "pyvenv.cfg",
  "rust-toolchain", "rust-toolchain.toml", "shell.nix", "sitecustomize", "team.toml", "usercustomize", "vercel.json",
  "wercker.yml",
];
const BEGINNINGS = [
  "azure-pipelines", "captainhook.", "devenv.", "grumphp.", "husky.config.", "jenkinsfile", "lefthook-local.",
  "lefthook.", "lint-staged.config.", "mise.", "prek.", "simple-git-hooks.", "sitecustomize.", "usercustomize.",
];
const ENDINGS = [
  "._pth", ".code-workspace", ".ipr", ".iws", ".pth", ".sublime-project", ".sublime-workspace",
];
// Only files: folders are often called so.
const LAST_NAMES = [
  "applypatch-msg", "commit-msg", "fsmonitor-watchman", "head", "post-applypatch", "post-checkout", "post-commit",
  "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
  "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive",
  "push-to-checkout", "reference-transaction", "sendemail-validate",
];
// What some file system leaves out when it compares names.
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

function isProgramName(name, place, parts) {
  // To capitals and back: two of some letters have one and the same capital.
  const letters = name.normalize("NFD").replace(IGNORABLE, "").toUpperCase().toLowerCase();
  const plain = letters.split(":")[0].trim().replace(/[. ]+$/, "");
  const isListed = FILES.includes(plain) || (place === parts.length - 1 && LAST_NAMES.includes(plain));
  const isAlike = BEGINNINGS.some((one) => plain.startsWith(one)) || ENDINGS.some((one) => plain.endsWith(one));
  return plain.startsWith(".") || isListed || isAlike;
}

function target(path) {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

// Where a path leads, even if its last parts do not exist yet: a link to nothing leads to where a file would be made.
function real(path, links = MOST_LINKS) {
  try {
    return realpathSync(path);
  } catch {
    if (dirname(path) === path) return path;
  }
  const here = join(real(dirname(path), links), basename(path));
  const next = target(here);
  if (next === undefined) return here;
  // pi does not call a tool if this fails.
  if (links === 0) throw new Error(`${path} leads through too many links.`);
  return real(resolve(dirname(here), next), links - 1);
}

// Why a file may not be changed, or nothing.
function refusal(path, folder) {
  const outside = `You may only change files in ${folder}.`;
  // Signs that pi itself replaces: a home folder, a mention of a file, unusual spaces.
  if (typeof path !== "string" || /^[~@]|[\u00A0\u2000-\u200A\u202F\u205F\u3000]/.test(path)) return outside;
  const way = relative(real(folder), real(resolve(folder, path)));
  const parts = way.split(sep);
  if (way === "" || parts[0] === ".." || isAbsolute(way)) return outside;
  // Hidden files and folders hold settings, and programs that others run. A file with several names may be one of them.
  const links = statSync(resolve(folder, path), { throwIfNoEntry: false })?.nlink ?? 1;
  const isUsual = !parts.some(isProgramName) && links === 1;
  return isUsual ? undefined : "You may not change hidden files, or files that make programs run.";
}

export default function (pi) {
  pi.on("tool_call", async (event, context) => {
    if (event.toolName !== "write" && event.toolName !== "edit") return;
    const reason = refusal(event.input.path, context.cwd);
    if (reason !== undefined) return { block: true, reason };
  });
}
