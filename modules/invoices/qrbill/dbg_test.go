package qrbill
import ("testing";"os";"context";"time";"runtime/pprof";"syscall")
func TestDbg(t *testing.T){
 r:=NewReader(Config{CacheDir:"/tmp/qr/cache"})
 w,_:=os.ReadFile("/work/shared/qr-corpus/files/pdf-vector-b00-00.pdf")
 r.Read(context.Background(),w,Options{})
 b,_:=os.ReadFile(os.Getenv("F"))
 f,_:=os.Create("/tmp/qr/cpu.prof"); pprof.StartCPUProfile(f)
 s:=time.Now(); var u,v syscall.Rusage; syscall.Getrusage(0,&u)
 for range 5 { _,err:=r.Read(context.Background(),b,Options{}); t.Log("read",time.Since(s),err) }
 syscall.Getrusage(0,&v); t.Log("CPU per read ms", (v.Utime.Nano()-u.Utime.Nano()+v.Stime.Nano()-u.Stime.Nano())/5e6)
 pprof.StopCPUProfile()
}
