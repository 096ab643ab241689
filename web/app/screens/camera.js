import { html, useEffect, useRef, useState } from '../lib.js';
import { t } from '../i18n.js';
import { Notice } from '../ui/feedback.js';
import { Icon } from '../ui/icon.js';

const JPEG_QUALITY = 0.92; // High enough for the small modules of a large QR code.
const VIDEO = { facingMode: 'environment', width: { ideal: 1920 }, height: { ideal: 1080 } };

/**
 * Takes a picture of an invoice with the device's camera.
 * @param {{take: (file: File) => void, close: () => void}} props
 */
export function Camera({ take, close }) {
  const video = useRef();
  const [problem, setProblem] = useState('');
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let stream;
    let gone = false;
    (async () => {
      try {
        stream = await navigator.mediaDevices.getUserMedia({ video: VIDEO });
        if (gone) return stream.getTracks().forEach((track) => track.stop());
        video.current.srcObject = stream;
        await video.current.play();
        return setReady(true);
      } catch (error) {
        return setProblem(error.name === 'NotAllowedError' ? t('camera.denied') : t('camera.none'));
      }
    })();
    return () => {
      gone = true;
      stream?.getTracks().forEach((track) => track.stop());
    };
  }, []);
  function takePicture() {
    const canvas = document.createElement('canvas');
    canvas.width = video.current.videoWidth;
    canvas.height = video.current.videoHeight;
    canvas.getContext('2d').drawImage(video.current, 0, 0);
    canvas.toBlob((blob) => take(new File([blob], t('camera.name'), { type: 'image/jpeg' })), 'image/jpeg', JPEG_QUALITY);
  }
  return html`<div class="camera">
    ${problem
      ? html`<${Notice} tone="warn" title=${problem}>${t('camera.instead')}<//>`
      : html`<video ref=${video} muted playsinline aria-label=${t('camera.view')}></video>
          <p class="fine">${t('camera.hint')}</p>`}
    <div class="row">
      ${!problem && html`<button type="button" disabled=${!ready} onClick=${takePicture}>
        <${Icon} name="camera" size=${16} />${t('camera.shoot')}
      </button>`}
      <button type="button" class="quiet" onClick=${close}>${t('do.cancel')}</button>
    </div>
  </div>`;
}
