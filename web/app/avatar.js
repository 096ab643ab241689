import { api } from './api.js';
import { store } from './store.js';

/** The address of the caller's own picture, or null. */
export const avatarUrl = store(null);

/** Loads the address of the caller's picture. */
export const loadAvatar = async () => avatarUrl.set((await api.get('/v1/profile')).avatar?.thumbnail_url ?? null);
