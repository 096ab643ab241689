import { api } from '../api.js';
import { defer } from '../deferred.js';
import { t, term } from '../i18n.js';
import { toast } from '../ui/feedback.js';

/** The statuses of tasks, in the order of the board. */
export const LANES = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];

/** The statuses that may follow each status, as the server allows them. */
export const NEXT = {
  pending: ['in_progress', 'completed', 'canceled', 'declined'],
  in_progress: ['completed', 'canceled', 'declined'],
};

/** Whether a task with the status has ended. */
export const isClosed = (status) => !NEXT[status];

/** The key of a change of a task's status that waits. */
export const moveKey = (id) => `task ${id}`;

/**
 * Sets the status of a task. A status that nothing can follow is set in ten seconds, unless the user undoes it.
 * @param {{id: string, customer_id: string, title: string}} task
 * @param {string} status
 * @param {{done: () => void, failed: (error: any) => void}} then
 */
export async function setStatus(task, status, { done, failed }) {
  const text = t('tasks.moved', { title: task.title, status: term('task_status', status) });
  const run = async (options) => {
    await api.patch(`/v1/customers/${task.customer_id}/tasks/${task.id}/status`, { status }, options);
    done();
  };
  if (isClosed(status)) {
    defer({ key: moveKey(task.id), text, run, failed, task, status });
    return;
  }
  try {
    await run();
    toast(text);
  } catch (error) {
    failed(error);
  }
}
