// An extension for pi: it may change usual files in the folder in which it runs, and no others.
import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

const MOST_LINKS = 40;
// As in usual_edits.py: files that are not hidden and say what agents may do.
const SETTINGS_FILES = ["opencode.json", "opencode.jsonc", "team.toml"];

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
  // Hidden files and folders hold settings, and programs that others run.
  const isUsual = !parts.some((part) => part.startsWith(".")) && !SETTINGS_FILES.includes(parts.at(-1));
  return isUsual ? undefined : "You may not change hidden files, or files that say what agents may do.";
}

export default function (pi) {
  pi.on("tool_call", async (event, context) => {
    if (event.toolName !== "write" && event.toolName !== "edit") return;
    const reason = refusal(event.input.path, context.cwd);
    if (reason !== undefined) return { block: true, reason };
  });
}
