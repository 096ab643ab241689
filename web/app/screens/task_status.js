/** The statuses of tasks, in the order of the board. */
export const LANES = ['pending', 'in_progress', 'completed', 'declined', 'canceled'];

/** The statuses that may follow each status, as the server allows them. */
export const NEXT = {
  pending: ['in_progress', 'completed', 'canceled', 'declined'],
  in_progress: ['completed', 'canceled', 'declined'],
};

/** Whether a task with the status has ended. */
export const isClosed = (status) => !NEXT[status];
