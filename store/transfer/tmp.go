package transfer

import "context"

func openSource(ctx context.Context, o *Options) (source, error) { return openDirectory(ctx, o) }
func openTarget(ctx context.Context, o *Options) (target, error) { return newDirectoryTarget(o) }
