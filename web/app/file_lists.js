import { useEffect } from './lib.js';
import { caller } from './access.js';
import { api } from './api.js';
import { newestOnly } from './in_order.js';
import { store, useStore } from './store.js';
import { onFrame } from './stream.js';

// The files of a customer or a chat are read once for all components that show some of them.

const PATHS = {
  kyc_documents: ({ parent }) => `/v1/customers/${parent}/kyc/files`,
  chat_messages: ({ parent }) => `/v1/chats/${parent}/files`,
  tasks: ({ parent, record }) => `/v1/customers/${parent}/tasks/${record}/files`,
};

const UPLOADS = {
  kyc_documents: ({ parent, record }) => `/v1/customers/${parent}/kyc/documents/${record}/files`,
  chat_messages: ({ parent, record }) => `/v1/chats/${parent}/messages/${record}/files`,
  tasks: ({ parent, record }) => `/v1/customers/${parent}/tasks/${record}/files`,
};

/** The path to upload a file of a record to. */
export const uploadPath = (of) => UPLOADS[of.type](of);

const CHECK_MS = 3_000; // between two looks at files that a virus scanner has not seen yet
const SETTLE_MS = 300; // for several reasons to load again in a row
const MAX_PAGES = 10;

const lists = store({}); // path → {files, error}
caller.watch((now) => now || lists.set({})); // The next user must not see them.
const shown = new Map(); // path → how many components show it
const timers = new Map();
const loads = new Map(); // path → newestOnly() of its loads

async function load(path) {
  timers.delete(path);
  if (!loads.has(path)) loads.set(path, newestOnly());
  const isNewest = loads.get(path)();
  try {
    const files = [];
    for (let page = 0, before; page < MAX_PAGES; page++) {
      const answer = await api.get(path, { before });
      files.push(...answer.files);
      if (!answer.has_more) break;
      before = files.at(-1).id;
    }
    if (!isNewest()) return;
    lists.set((was) => ({ ...was, [path]: { files, error: null } }));
    if (shown.has(path) && files.some((file) => file.status === 'checking')) later(path, CHECK_MS);
  } catch (error) {
    if (isNewest()) lists.set((was) => ({ ...was, [path]: { files: was[path]?.files, error } }));
  }
}

function later(path, delay = SETTLE_MS) {
  clearTimeout(timers.get(path));
  timers.set(path, setTimeout(() => load(path), delay));
}

/** Reads the files of a record and its siblings again, soon and once for many calls. */
export const reloadFiles = (of) => later(PATHS[of.type](of));

onFrame((frame) => {
  if (frame.event === 'notification' || (frame.event === 'open' && frame.again)) for (const path of shown.keys()) later(path);
});

/**
 * Returns the files of one record, the newest first: {files, error, reload}. files is undefined until they are loaded.
 * @param {{type: 'kyc_documents'|'chat_messages'|'tasks', parent: string, record?: string}} of
 *   without a record: all files of the customer or chat
 */
export function useFiles(of) {
  const path = PATHS[of.type](of);
  const list = useStore(lists, (all) => all[path]);
  useEffect(() => {
    const others = shown.get(path) ?? 0;
    shown.set(path, others + 1);
    if (!others) load(path);
    return () => {
      const left = shown.get(path) - 1;
      if (left) shown.set(path, left);
      else shown.delete(path);
    };
  }, [path]);
  const files = of.record ? list?.files?.filter((file) => file.record_id === of.record) : list?.files;
  return { files, error: list?.error ?? null, reload: () => reloadFiles(of) };
}
